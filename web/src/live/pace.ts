/** What comes faster than anybody reads is shown so often and no more: at once, then the newest after a while. */
export interface Pace<Value> {
  /** Of several within the same while only the last is shown. */
  show(value: Value): void;
  /** Nothing is shown any more. */
  end(): void;
}

export function pace<Value>(ms: number, shown: (value: Value) => void): Pace<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let waiting: { readonly value: Value } | undefined;
  const run = (value: Value) => {
    timer = setTimeout(() => {
      timer = undefined;
      if (waiting === undefined) return;
      const { value: next } = waiting;
      waiting = undefined;
      run(next);
    }, ms);
    shown(value);
  };
  return {
    show(value) {
      if (timer === undefined) run(value);
      else waiting = { value };
    },
    end() {
      clearTimeout(timer);
      timer = undefined;
      waiting = undefined;
    },
  };
}
