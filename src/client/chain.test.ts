/**
 * What is told over connections that break, that lose frames and that bring them twice, against a model of the server's
 * side: a journal, and what it sends to a client that comes with a cursor.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Chain, type Frame } from "./chain.js";
import type { Told } from "./told.js";

const JOURNAL = "journal";

interface Entry {
  readonly seq: number;
  /** In how many frames it is told; 0: it is none of this client's. */
  readonly parts: number;
}

const frame = (method: string, params: Record<string, unknown>): Frame => ({
  method,
  params: { journal_id: JOURNAL, ...params },
});
const pushed = (seq: number, prev_seq: number | null, part?: number): Frame =>
  frame("notification/created", { seq, prev_seq, ...(part === undefined ? {} : { part }) });
/** What was there when the client connected. */
const waiting = (seq: number, prev_seq: number | null): Frame => ({
  ...pushed(seq, prev_seq),
  params: { ...pushed(seq, prev_seq).params, waiting: true },
});
const counts = (seq: number) => frame("inbox/counts", { seq });
const heartbeat = (seq: number | null, up_to_seq: number) => frame("stream/heartbeat", { seq, up_to_seq });
const reset = (newest_seq: number) => frame("stream/reset", { reason: "cursor_too_old", newest_seq });

const nameOf = ({ params }: Frame) => `${params["seq"]}.${params["part"] ?? 1}`;
const isPushed = ({ method }: { method: string }) => method === "notification/created";

function chain(cursor: { journal_id: string; after_seq: number; after_part?: number } | null = null) {
  const told: Told[] = [];
  const one = new Chain(cursor, (news) => told.push(news));
  one.begin();
  return { told, chain: one, names: () => told.filter(isPushed).map((each) => nameOf(each as unknown as Frame)) };
}

/** What a server sends over one connection: from the cursor on, or first what waits. */
function connection(journal: readonly Entry[], cursor: Chain["cursor"]): Frame[] {
  const frames: Frame[] = [];
  let previous = cursor?.after_seq ?? null;
  const send = (seq: number, part?: number) => {
    frames.push(pushed(seq, previous, part));
    previous = seq;
  };
  let after = cursor;
  if (after === null) {
    const seen = journal.slice(0, Math.ceil(journal.length / 2));
    // What waits: the first frame of every third entry, in no order of theirs.
    for (const { seq, parts } of seen.filter((one) => one.seq % 3 === 0).toReversed())
      if (parts > 0) {
        frames.push(waiting(seq, previous));
        previous = seq;
      }
    after = { journal_id: JOURNAL, after_seq: seen.at(-1)?.seq ?? 0 };
    frames.push(counts(after.after_seq));
  }
  for (const { seq, parts } of journal) {
    for (let part = 1; part <= parts; part += 1) {
      const isNew = seq > after.after_seq || (seq === after.after_seq && part > (after.after_part ?? part));
      if (isNew) send(seq, parts === 1 ? undefined : part);
    }
    if (seq > after.after_seq && seq % 4 === 0) frames.push(heartbeat(previous, seq));
  }
  return frames;
}

describe("what is told over many connections", () => {
  const journals = fc
    .array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 30 })
    .map((parts) => parts.map((each, at) => ({ seq: at + 1, parts: each })));
  /** What becomes of each frame. The connection is cut after some. */
  const fates = fc.array(
    fc.array(fc.constantFrom("comes", "comes", "comes", "comes", "comes twice", "is lost", "is cut"), {
      maxLength: 25,
    }),
    { maxLength: 12 },
  );
  const starts = fc.option(fc.nat({ max: 30 }), { nil: null });

  it("is every frame once and in order, whatever becomes of them on their way (I17)", () => {
    fc.assert(
      fc.property(journals, fates, starts, (journal, connections, start) => {
        const from = start === null ? null : { journal_id: JOURNAL, after_seq: Math.min(start, journal.length) };
        const whole = connection(journal, from).filter(isPushed);
        const { chain: one, names } = chain(from);
        for (const fate of [...connections, []]) {
          one.begin();
          const frames = connection(journal, one.cursor);
          const welcome = frames.findIndex(({ method }) => method === "inbox/counts");
          const end = journal.at(-1)?.seq ?? 0;
          const last = frames.findLast(isPushed)?.params["seq"] ?? one.cursor?.after_seq ?? null;
          frames.push(heartbeat(last as number | null, end));
          for (const [at, each] of frames.entries()) {
            const what = fate[at] ?? "comes";
            if (what === "is cut") break;
            if (what === "is lost" && at > welcome && isLosable(each)) continue;
            if (!one.take(each)) break;
            if (what === "comes twice" && isPushed(each) && !one.take(each)) break;
          }
        }
        expect(names()).toEqual(whole.map(nameOf));
      }),
      { numRuns: 2_000 },
    );
  });

  /** Connections lose no frame from their middle; a bad proxy might. It is seen where a frame is the only one of its entry. */
  const isLosable = ({ method, params }: Frame) => isPushed({ method }) && params["part"] === undefined;
});

describe("one frame after the other", () => {
  it("what waits is told as a whole, and is no place to go on from", () => {
    const { chain: one, told, names } = chain();
    one.take(waiting(7, null));
    one.take(waiting(3, 7));
    expect(told).toEqual([]);
    expect(one.cursor).toBeNull();
    one.take(counts(9));
    expect(names()).toEqual(["7.1", "3.1"]);
    expect(told.map(({ cursor }) => cursor)).toEqual([null, null, { journal_id: JOURNAL, after_seq: 9 }]);
    expect(one.take(pushed(10, 3))).toBe(true);
    expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 10 });
  });

  it("cut off in the middle of what waits, it begins anew", () => {
    const { chain: one, names } = chain();
    one.take(waiting(7, null));
    one.begin();
    one.take(waiting(8, null));
    one.take(counts(8));
    expect(names()).toEqual(["8.1"]);
  });

  it("a frame whose predecessor has not come is refused, and the cursor stays", () => {
    const { chain: one, names } = chain({ journal_id: JOURNAL, after_seq: 4 });
    expect(one.take(pushed(5, 4))).toBe(true);
    expect(one.take(pushed(7, 6))).toBe(false);
    expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 5 });
    expect(names()).toEqual(["5.1"]);
  });

  it("a heartbeat after a frame that has not come is refused, and one after the last moves the cursor on", () => {
    const { chain: one } = chain({ journal_id: JOURNAL, after_seq: 4 });
    expect(one.take(heartbeat(4, 9))).toBe(true);
    expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 9 });
    expect(one.take(heartbeat(11, 12))).toBe(false);
    expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 9 });
  });

  it("an older heartbeat does not move it back", () => {
    const { chain: one } = chain({ journal_id: JOURNAL, after_seq: 9 });
    expect(one.take(heartbeat(9, 4))).toBe(true);
    expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 9 });
  });

  it("counts within a stream are no place: what they stand before may not have come", () => {
    const { chain: one } = chain({ journal_id: JOURNAL, after_seq: 4 });
    one.take(counts(8));
    expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 4 });
  });

  it("parts of an entry: the cursor is within it", () => {
    const { chain: one, names } = chain({ journal_id: JOURNAL, after_seq: 4 });
    one.take(pushed(5, 4, 1));
    expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 5, after_part: 1 });
    one.begin();
    expect(one.take(pushed(5, 5, 2))).toBe(true);
    expect(names()).toEqual(["5.1", "5.2"]);
  });

  it("a frame of another journal is refused", () => {
    const { chain: one } = chain({ journal_id: "another", after_seq: 4 });
    expect(one.take(pushed(5, 4))).toBe(false);
    expect(one.take(heartbeat(4, 5))).toBe(false);
  });

  describe("a reset", () => {
    it("that answers the cursor is told at once, and what waits after it as a whole", () => {
      const { chain: one, told, names } = chain({ journal_id: "another", after_seq: 900 });
      one.take(reset(9));
      expect(told).toMatchObject([{ method: "stream/reset", cursor: { journal_id: JOURNAL, after_seq: 9 } }]);
      one.take(waiting(3, null));
      expect(names()).toEqual([]);
      one.take(counts(9));
      expect(names()).toEqual(["3.1"]);
      expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 9 });
      expect(one.take(pushed(10, 3))).toBe(true);
    });

    it("cut off in the middle of what waits after it, goes on from the reset", () => {
      const { chain: one, names } = chain({ journal_id: JOURNAL, after_seq: 2 });
      one.take(reset(50));
      one.take(waiting(3, null));
      one.take(waiting(17, 3));
      one.begin();
      expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 50 });
      expect(one.take(pushed(51, 50))).toBe(true);
      expect(names()).toEqual(["51.1"]);
    });

    it("that is the first thing, with nothing waiting after it: what follows is told when the server says so", () => {
      const { chain: one, names } = chain({ journal_id: JOURNAL, after_seq: 2 });
      one.take(reset(9));
      one.take(pushed(10, null));
      one.caughtUp();
      expect(names()).toEqual(["10.1"]);
      expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 10 });
      one.begin();
      expect(one.take(pushed(11, 10))).toBe(true);
    });

    it("or when a heartbeat does", () => {
      const { chain: one, names } = chain({ journal_id: JOURNAL, after_seq: 2 });
      one.take(reset(9));
      one.take(pushed(10, null));
      expect(names()).toEqual([]);
      expect(one.take(heartbeat(10, 12))).toBe(true);
      expect(names()).toEqual(["10.1"]);
      expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 12 });
    });

    it("and counts that are older than what came after it do not bring that twice", () => {
      const { chain: one, names } = chain({ journal_id: JOURNAL, after_seq: 2 });
      one.take(reset(9));
      one.take(pushed(10, null));
      one.take(pushed(11, 10));
      one.take(counts(10));
      expect(one.cursor).toEqual({ journal_id: JOURNAL, after_seq: 11 });
      expect(names()).toEqual(["10.1", "11.1"]);
    });

    it("in the middle: what comes next is connected with nothing", () => {
      const { chain: one, names } = chain({ journal_id: JOURNAL, after_seq: 2 });
      one.take(pushed(3, 2));
      one.take(reset(9));
      expect(one.take(pushed(10, null))).toBe(true);
      expect(names()).toEqual(["3.1", "10.1"]);
    });
  });
});
