import { Tidings } from "../../dist/index.js";
import { callers, eventOf, rate } from "../workload.mjs";

/** `emit` until it is on disk. */
export async function durableEmit({ folder, users, warmup, emits }) {
  const tidings = await Tidings.open({ data: folder });
  try {
    const emit = (index) => tidings.emit(eventOf(index, users));
    await callers(warmup, emit);
    return await rate(emits, () => callers(emits, (index) => emit(warmup + index)));
  } finally {
    await tidings.close();
  }
}

/** `emit` and then `ack`, both on disk: from nothing to DELIVERED. */
export async function fullCycle({ folder, users, warmup, cycles }) {
  const tidings = await Tidings.open({ data: folder });
  try {
    const cycle = async (index) => {
      const answer = await tidings.emit(eventOf(index, users));
      const { id, revision } = answer.matches[0].notification;
      const after = await tidings.ack({ id, revision, action: "rendered" });
      if (after.state !== "DELIVERED") throw new Error(`a cycle ended with ${JSON.stringify(after)}`);
    };
    await callers(warmup, cycle);
    return await rate(cycles, () => callers(cycles, (index) => cycle(warmup + index)));
  } finally {
    await tidings.close();
  }
}
