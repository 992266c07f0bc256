/** What every load is made of, whichever door it enters by. */

export const USERS = ["ada", "ben", "cyd", "dee"];
const POOL_MAX = 300;

/** What an answer says about a notification, as short as a line can be. */
export function told(view) {
  const { id, state, revision, lease_epoch, count } = view;
  return [id, state, revision, lease_epoch, count];
}

/** The newest of something, bounded; one is taken out or looked at. */
export function pool(random) {
  const items = [];
  return {
    add(item) {
      items.push(item);
      if (items.length > POOL_MAX) items.shift();
    },
    look: () => (items.length === 0 ? undefined : random.pick(items)),
    take: () => (items.length === 0 ? undefined : items.splice(random.between(0, items.length - 1), 1)[0]),
  };
}

/** Words by which what one life asks for is known again in the journal. */
export function wordsOf(life) {
  let made = 0;
  return () => {
    made += 1;
    return `${life}.${made}`;
  };
}

/** An event of one of these types: with a thread, a dedup key, a subject, a producer's id, or without. */
export function newEvent(random, { token, types, threadOf }) {
  const user_id = random.pick(USERS);
  const event = {
    type: random.pick(types),
    source: random.pick(["ci", "hooks", "agent", "budget"]),
    severity: random.pick(["debug", "info", "warning", "error", "critical"]),
    user_id,
    payload: { token, message: `word ${random.between(1, 4)}`, pad: "x".repeat(random.between(0, 400)) },
  };
  if (random.chance(0.5)) event.thread_id = threadOf(user_id);
  if (random.chance(0.4)) event.dedupe_key = `key-${random.between(1, 8)}`;
  if (random.chance(0.3)) event.subject = `h_${random.between(1, 5)}#gen-${random.between(1, 3)}`;
  if (random.chance(0.4)) event.id = `p-${token}`;
  return { token, event };
}

export function newNotify(random, { token, threadOf }) {
  const user_id = random.pick(USERS);
  const input = {
    content: `told ${random.between(1, 4)}`,
    data: { token },
    user_id,
    target: random.pick(["user", "agent"]),
    handler: random.pick(["system", "agent"]),
    severity: random.pick(["info", "error"]),
  };
  if (random.chance(0.5)) input.thread_id = threadOf(user_id);
  if (random.chance(0.4)) Object.assign(input, { dedupe_key: `key-${random.between(1, 8)}`, dedupe_window_ms: 60_000 });
  return input;
}
