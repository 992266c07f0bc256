/** What stays as it was when somebody comes back to a view, for as long as the page is open. */
import { useSyncExternalStore } from "react";

export interface Kept<Value> {
  get(): Value;
  set(value: Value): void;
  use(): [Value, (value: Value) => void];
}

export function kept<Value>(first: Value): Kept<Value> {
  let now = first;
  const listeners = new Set<() => void>();
  const get = () => now;
  const set = (value: Value) => {
    now = value;
    for (const listener of listeners) listener();
  };
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  };
  return { get, set, use: () => [useSyncExternalStore(subscribe, get), set] };
}
