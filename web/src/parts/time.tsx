/** How long ago, in words that stay true; the exact time on hover. */
import { Text, type TextProps, Tooltip } from "@mantine/core";
import { useEffect, useState } from "react";
import classes from "./time.module.css";

const UNITS = [
  { unit: "day", seconds: 86_400 },
  { unit: "hour", seconds: 3_600 },
  { unit: "minute", seconds: 60 },
] as const;

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

export function ago(time: number, now: number): string {
  const seconds = Math.round((time - now) / 1_000);
  const found = UNITS.find((one) => Math.abs(seconds) >= one.seconds);
  if (found !== undefined) return relative.format(Math.trunc(seconds / found.seconds), found.unit);
  return Math.abs(seconds) < 5 ? "just now" : relative.format(seconds, "second");
}

export function exactly(time: string): string {
  return exact.format(new Date(time));
}

const timeOfDay = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const dayAndTime = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

/** The time on a clock; with the day where that is not today. */
export function clock(time: string): string {
  const date = new Date(time);
  return date.toDateString() === new Date().toDateString() ? timeOfDay.format(date) : dayAndTime.format(date);
}

/** One clock for the whole page: a thousand rows need no thousand timers. */
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
const TICK_MS = 5_000;

function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const tick = () => setNow(Date.now());
    listeners.add(tick);
    timer ??= setInterval(() => {
      for (const listener of listeners) listener();
    }, TICK_MS);
    return () => {
      listeners.delete(tick);
      if (listeners.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return now;
}

/** The same for rows of long lists, which come and go by the hundred: one element and nothing else. */
export function RowTime({ at }: { readonly at: string }) {
  const now = useNow();
  return (
    <time dateTime={at} title={exactly(at)} className={classes["time"]}>
      {ago(Date.parse(at), now)}
    </time>
  );
}

export function Time({ at, ...props }: { readonly at: string } & TextProps) {
  const now = useNow();
  return (
    <Tooltip label={exactly(at)}>
      <Text component="time" dateTime={at} size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }} {...props}>
        {ago(Date.parse(at), now)}
      </Text>
    </Tooltip>
  );
}
