/** Which day it is, also when it becomes another while the page is open. */
import { useEffect, useState } from "react";

/** Timers may come a little early. */
const SLACK_MS = 500;

function today(): number {
  return new Date().setHours(0, 0, 0, 0);
}

/** When the day began. */
export function useToday(): number {
  const [day, setDay] = useState(today);
  useEffect(() => {
    const look = () => setDay(today());
    const timer = setTimeout(look, new Date(day).setHours(24, 0, 0, 0) - Date.now() + SLACK_MS);
    // A machine that has slept is late with its timers.
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [day]);
  return day;
}
