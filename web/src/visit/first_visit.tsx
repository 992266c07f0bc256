/** A guided visit for whoever comes for the first time, when nothing has happened yet; loaded only then, or when asked for. */
import { lazy, Suspense, useEffect } from "react";
import { useAnswer } from "../session/session.js";
import { passVisit, startVisit, useVisit } from "./visit.js";

const Tour = lazy(() => import("./tour.js"));

export function FirstVisit() {
  const visit = useVisit();
  if (visit === "off") return null;
  if (visit === "due") return <Due />;
  return (
    <Suspense fallback={null}>
      <Tour />
    </Suspense>
  );
}

function Due() {
  const status = useAnswer("runtime/status", {});
  const threads = useAnswer("thread/list", { limit: 1 });
  const notifications = useAnswer("notification/list", { limit: 1 });
  useEffect(() => {
    if ([status, threads, notifications].some(({ state }) => state === "failed")) return passVisit();
    if (status.state !== "ready" || threads.state !== "ready" || notifications.state !== "ready") return;
    const isNew = threads.value.threads.length === 0 && notifications.value.notifications.length === 0;
    // A model that costs money does nothing that nobody has asked for.
    if (isNew && status.value.agent?.provider === "rehearsal") startVisit();
    else passVisit();
  }, [status, threads, notifications]);
  return null;
}
