/**
 * What happens when the surroundings fail: the disk, the clock, another program, the process itself. Each fault is
 * real, or as near as a test can come; each must end in a typed error or in survival, and never in the loss of
 * anything that was answered.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import {
  type Clock,
  type EmitAnswer,
  isMiss,
  type JournalEntry,
  type Miss,
  type Notification,
  StoreError,
  Tidings,
  TidingsError,
} from "../../src/index.js";
import { SCHEMA_VERSION } from "../../src/store/sqlite/migrate.js";
import { eventually, openTidings, temporaryFolder } from "../support/folder.js";
import { Host, type Refusal, refusalOf } from "../support/host.js";

const BULKY = { type: "cli.bulky", source: "faults", payload: { message: "x".repeat(500) } };
const FOR_AGENT = { content: "decide", target: "agent", handler: "agent" } as const;
const DAY_MS = 86_400_000;
const PAGE_BYTES = 4_096;
const NOBODY = 65_534;

const databaseIn = (folder: string) => join(folder, "tidings.db");

/** Everything that was answered is there, the audit is clean, and the store goes on. */
async function expectKept(data: string, ids: readonly string[]): Promise<void> {
  const tidings = await Tidings.open({ data });
  try {
    const missing: string[] = [];
    for (const id of ids) if (isMiss(await tidings.explain(id))) missing.push(id);
    expect(missing).toEqual([]);
    expect((await tidings.audit()).problems).toEqual([]);
    expect((await tidings.emit(BULKY)).outcome).toBe("accepted");
  } finally {
    await tidings.close();
  }
}

async function failureOf(promise: Promise<unknown>): Promise<TidingsError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof TidingsError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

async function emitUntilRefused(tidings: Tidings, callers: number) {
  const answered: string[] = [];
  const refusals: unknown[] = [];
  let sent = 0;
  const caller = async () => {
    while (answered.length < 20_000) {
      sent += 1;
      answered.push((await tidings.emit({ ...BULKY, dedupe_key: `${sent}` })).id);
    }
  };
  await Promise.all(Array.from({ length: callers }, () => caller().catch((error: unknown) => refusals.push(error))));
  return { answered, refusals };
}

interface Refused {
  answered: string[];
  refusals: Refusal[];
  failures: Refusal[];
}

/** Whether a command that the machine may forbid works here. */
function works(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

describe("a disk that fails", () => {
  it("is full: every pending caller is told store_full, once it is told for all, and what was answered stays (I6)", async () => {
    const data = await temporaryFolder();
    const failures: StoreError[] = [];
    const tidings = await Tidings.open({ data, bytes_max: 500_000, onFailure: (error) => failures.push(error) });
    const { answered, refusals } = await emitUntilRefused(tidings, 32);
    expect(answered.length).toBeGreaterThan(50);
    expect(refusals).toHaveLength(32);
    const [failure] = failures;
    expect(failures).toHaveLength(1);
    expect(failure).toBeInstanceOf(StoreError);
    expect(failure).toMatchObject({ code: "store_full", retryable: false });
    expect(failure?.message).toContain(databaseIn(data));
    for (const refusal of refusals) expect(refusal).toBe(failure);
    // It is over: whatever is asked gets the same error, also a reading, and closing still frees the folder.
    expect(await failureOf(tidings.emit(BULKY))).toBe(failure);
    expect(await failureOf(tidings.ack({ id: "any", revision: 1, action: "rendered" }))).toBe(failure);
    expect(await failureOf(tidings.list())).toBe(failure);
    await expect(tidings.watch({ after: 0 }).next()).rejects.toBe(failure);
    await tidings.close();
    await expectKept(data, answered);
  });

  it("is full and stays so: what is there can be read, and pruning makes room", async () => {
    const data = await temporaryFolder();
    const bytes_max = 500_000;
    const full = await Tidings.open({ data, bytes_max });
    const { answered } = await emitUntilRefused(full, 8);
    await full.close();
    const tidings = await openTidings({ data, bytes_max });
    const { notifications } = await tidings.list({ limit: 1_000 });
    expect(notifications).toHaveLength(answered.length);
    for (const { id } of notifications.slice(0, 20)) await tidings.ack({ id, revision: 1, action: "clicked" });
    const later = await eventually(
      () => tidings.prune({ older_than_ms: 0 }),
      (done) => done.notifications > 0,
    );
    expect(later.notifications).toBeGreaterThan(0);
    expect((await tidings.audit()).problems).toEqual([]);
  });

  it("has no room for the schema: store_full, and the folder is free again", async () => {
    const data = await temporaryFolder();
    const failure = await failureOf(Tidings.open({ data, bytes_max: 20_000 }));
    expect(failure).toMatchObject({ code: "store_full", retryable: false });
    await expectKept(data, []);
  });

  it("refuses a write (a real EFBIG): store_io, and what was answered stays (I6)", async () => {
    const data = await temporaryFolder();
    const host = await Host.start({ under: ["bash", "-c", 'ulimit -f 600; exec "$@"', "limited"] });
    await host.open({ data });
    const { answered, refusals, failures } = await host.command<Refused>("emitUntilRefused", 16, BULKY);
    expect(answered.length).toBeGreaterThan(10);
    expect(refusals.map((refusal) => refusal.code)).toEqual(Array(16).fill("store_io"));
    expect(failures).toHaveLength(1);
    expect(failures[0]).toMatchObject({ name: "StoreError", code: "store_io", retryable: false });
    expect(failures[0]?.message).toContain("SQLITE_IOERR_WRITE");
    expect(await refusalOf(host.call("emit", BULKY))).toEqual(failures[0]);
    await host.call("close");
    // The process lives on, and its folder is free while it does.
    await expectKept(data, answered);
  });

  const mayMount = works("unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt");

  it.runIf(mayMount)("has no space left (a real ENOSPC): store_full, and with more room it goes on (I6)", async () => {
    const data = await temporaryFolder();
    const mount = 'mount -t tmpfs -o size=700k none "$0" && exec "$@"';
    const host = await Host.start({ under: ["unshare", "-rm", "bash", "-c", mount, data] });
    await host.open({ data });
    const { answered, refusals, failures } = await host.command<Refused>("emitUntilRefused", 16, BULKY);
    expect(answered.length).toBeGreaterThan(10);
    expect(refusals.map((refusal) => refusal.code)).toEqual(Array(16).fill("store_full"));
    expect(failures).toHaveLength(1);
    await host.call("close");
    await host.command("run", "mount", "-o", "remount,size=32m", data);
    // Only this process sees the mount.
    await host.open({ data });
    for (const id of answered) expect(await host.call("explain", id)).not.toHaveProperty("miss");
    expect(await host.call("audit")).toMatchObject({ ok: true });
    expect(await host.call("emit", BULKY)).toMatchObject({ outcome: "accepted" });
    await host.call("close");
  });

  it.runIf(mayMount).each(["4k", "16k", "64k"])(
    "has %s from the start: store_full or store_io on opening",
    async (size) => {
      const data = await temporaryFolder();
      const mount = `mount -t tmpfs -o size=${size} none "$0" && exec "$@"`;
      const host = await Host.start({ under: ["unshare", "-rm", "bash", "-c", mount, data] });
      const refusal = await refusalOf(host.open({ data }));
      expect(["store_full", "store_io"]).toContain(refusal.code);
    },
  );

  const mayTrace = works("strace", "-e", "trace=none", "-e", "inject=fsync:error=EIO", "true");

  it.runIf(mayTrace).each(["EIO", "ENOSPC"])(
    "fails a flush with %s: the commit is not answered, nothing is retried, the rest stays (I6, I7)",
    async (errno) => {
      const data = await temporaryFolder();
      await expectKept(data, []);
      const inject = `inject=fsync,fdatasync:error=${errno}:when=20+`;
      const host = await Host.start({
        under: ["strace", "-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", inject],
      });
      await host.open({ data });
      const { answered, refusals, failures } = await host.command<Refused>("emitUntilRefused", 4, BULKY);
      expect(answered.length).toBeGreaterThan(3);
      expect(refusals).toHaveLength(4);
      expect(failures).toHaveLength(1);
      expect(["store_io", "store_full"]).toContain(failures[0]?.code);
      await host.call("close");
      await expectKept(data, answered);
    },
  );
});

describe("a database in other hands", () => {
  it("is locked for a second by another program: an emit waits and succeeds", async () => {
    const data = await temporaryFolder();
    const tidings = await openTidings({ data });
    const other = await Host.start();
    await other.command("lock", databaseIn(data));
    const emitted = tidings.emit(BULKY);
    expect(await Promise.race([emitted, delay(1_000, "still waiting")])).toBe("still waiting");
    // Reading does not wait.
    expect((await tidings.list()).notifications).toEqual([]);
    await other.command("unlock");
    expect((await emitted).outcome).toBe("accepted");
  });

  it("is locked for longer than the store waits: store_busy, retryable, nothing stored, and it goes on", async () => {
    const clock = new JumpingClock();
    const data = await temporaryFolder();
    const tidings = await openTidings({ data, clock });
    const other = await Host.start();
    await other.command("lock", databaseIn(data));
    const emits = [tidings.emit(BULKY), tidings.emit(BULKY), tidings.notify({ content: "told" })];
    const failures = Promise.all(emits.map(failureOf));
    const hurry = setInterval(() => clock.pass(5_000), 100);
    const [failure, ...others] = await failures;
    clearInterval(hurry);
    expect(failure).toBeInstanceOf(StoreError);
    expect(failure).toMatchObject({ code: "store_busy", retryable: true });
    for (const one of others) expect(one).toMatchObject({ code: "store_busy", retryable: true });
    await other.command("unlock");
    expect((await tidings.emit(BULKY)).seq).toBe(1);
    expect((await tidings.audit()).problems).toEqual([]);
  });

  it("has a writer: a second one is refused and told which process it is, until that one is killed", async () => {
    const data = await temporaryFolder();
    const host = await Host.start();
    const { pid } = await host.open({ data });
    const { id } = await host.call<EmitAnswer>("emit", BULKY);
    const failure = await failureOf(Tidings.open({ data, wait_ms: 200 }));
    expect(failure).toMatchObject({ code: "store_busy", retryable: true });
    expect(failure.message).toContain(`process ${pid} `);
    const beside = await openTidings({ data, mode: "write_if_free" });
    expect(beside.writable).toBe(false);
    expect(await failureOf(beside.emit(BULKY))).toMatchObject({ code: "read_only" });
    // Whoever waits gets the folder when the kernel frees it.
    const waiting = Tidings.open({ data, wait_ms: 30_000 });
    host.kill("SIGKILL");
    expect(await host.ended).toBe("SIGKILL");
    const next = await waiting;
    expect(next.writable).toBe(true);
    expect(isMiss(await next.explain(id))).toBe(false);
    await next.close();
  });

  it("has a reader beside the writer: it sees each commit, also those of the next writer after a kill (I16)", async () => {
    const data = await temporaryFolder();
    const first = await Host.start();
    await first.open({ data });
    const reader = await openTidings({ data, mode: "read" });
    const seen: JournalEntry[] = [];
    const ended = new AbortController();
    const watching = (async () => {
      for await (const entry of reader.watch({ after: 0, signal: ended.signal })) seen.push(entry);
    })();
    const see = (seq: number) =>
      eventually(
        async () => seen.length,
        (length) => length >= seq,
      );
    const bulky = (dedupe_key: string) => ({ ...BULKY, dedupe_key });
    const answers = [
      await first.call<EmitAnswer>("emit", bulky("one")),
      await first.call<EmitAnswer>("emit", bulky("two")),
    ];
    await see(2);
    first.kill("SIGKILL");
    await first.ended;
    const second = await Host.start();
    await second.open({ data });
    answers.push(await second.call<EmitAnswer>("emit", bulky("three")));
    await see(3);
    expect(seen.map((entry) => entry.seq)).toEqual([1, 2, 3]);
    expect(seen.map((entry) => (entry.type === "event" ? entry.event.id : undefined))).toEqual(
      answers.map(({ id }) => id),
    );
    expect((await reader.list()).notifications).toHaveLength(3);
    ended.abort();
    await watching;
  });

  it("is wanted by four processes at once: each has it in turn, and none loses anything (I1)", async () => {
    const data = await temporaryFolder();
    const hosts = await Promise.all([1, 2, 3, 4].map(() => Host.start()));
    const answered = await Promise.all(
      hosts.map(async (host) => {
        await host.open({ data, wait_ms: 60_000 });
        const answers = await Promise.all(Array.from({ length: 10 }, () => host.call<EmitAnswer>("emit", BULKY)));
        await host.call("close");
        return answers;
      }),
    );
    const seqs = answered.flat().map(({ seq }) => seq);
    expect(seqs.sort((one, other) => one - other)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
    await expectKept(
      data,
      answered.flat().map(({ id }) => id),
    );
  });

  it("is opened twice in one process: the second is refused, and the first works on", async () => {
    const data = await temporaryFolder();
    const tidings = await openTidings({ data });
    expect(await failureOf(Tidings.open({ data, wait_ms: 0 }))).toMatchObject({ code: "store_busy", retryable: true });
    expect((await tidings.emit(BULKY)).outcome).toBe("accepted");
  });

  it("keeps its lock when the same process tries to open it again (I1)", async () => {
    const data = await temporaryFolder();
    await openTidings({ data });
    await failureOf(Tidings.open({ data, wait_ms: 0 }));
    const other = await Host.start();
    expect(await refusalOf(other.open({ data, wait_ms: 0 }))).toMatchObject({ code: "store_busy" });
  });

  it("is audited by a reader while its writer writes: no false alarm (I5)", async () => {
    const data = await temporaryFolder();
    const writer = await Host.start();
    await writer.open({ data });
    const writing = writer.command<Refused>("emitUntilRefused", 8, BULKY).catch(() => undefined);
    const reader = await openTidings({ data, mode: "read" });
    await eventually(
      () => reader.facts(),
      (facts) => facts.last_seq > 500,
    );
    const before = await reader.facts();
    const { problems } = await reader.audit();
    expect((await reader.facts()).last_seq).toBeGreaterThan(before.last_seq);
    writer.kill("SIGKILL");
    await writing;
    expect(problems).toEqual([]);
  });
});

describe("a damaged database", () => {
  /** A folder with some history, closed, so that all of it is in the database file. */
  async function folderWithHistory(): Promise<{ data: string; ids: string[] }> {
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data });
    const ids: string[] = [];
    for (let number = 0; number < 80; number += 1) {
      const answer = await tidings.emit({ ...BULKY, id: `p${number}`, thread_id: `t${number % 3}` });
      ids.push(answer.id);
      const shown = answer.matches[0]?.notification;
      if (shown !== undefined && number % 2 === 0) await tidings.ack({ id: shown.id, revision: 1, action: "clicked" });
    }
    await tidings.notify({ ...FOR_AGENT, data: { number: 80 } });
    await tidings.deliveries.claim();
    await tidings.close();
    return { data, ids };
  }

  /** How a damage shows: by what opening it threw, by what auditing it threw, or by what the audit found. */
  async function noticed(data: string): Promise<unknown> {
    let tidings: Tidings;
    try {
      tidings = await Tidings.open({ data });
    } catch (error) {
      return error;
    }
    try {
      const { ok, problems } = await tidings.audit();
      return ok ? undefined : problems;
    } catch (error) {
      return error;
    } finally {
      await tidings.close();
    }
  }

  /** Overwrites each page but the first, in a copy of its own. */
  async function damageEachPage(): Promise<Map<number, unknown>> {
    const { data } = await folderWithHistory();
    const sound = readFileSync(databaseIn(data));
    const found = new Map<number, unknown>();
    for (let page = 1; page < sound.length / PAGE_BYTES; page += 1) {
      const copy = await temporaryFolder();
      const damaged = Buffer.from(sound);
      for (let byte = 0; byte < 64; byte += 1)
        damaged[page * PAGE_BYTES + byte] = (damaged[page * PAGE_BYTES + byte] ?? 0) ^ 0xa5;
      writeFileSync(databaseIn(copy), damaged);
      found.set(page + 1, await noticed(copy));
    }
    return found;
  }

  it("with garbage in its header is refused as store_corrupt and left as it is", async () => {
    const { data } = await folderWithHistory();
    const file = databaseIn(data);
    const damaged = readFileSync(file);
    damaged.write("garbage where a header should be");
    writeFileSync(file, damaged);
    const failure = await failureOf(Tidings.open({ data }));
    expect(failure).toMatchObject({ code: "store_corrupt", retryable: false });
    expect(failure.message).toContain(file);
    expect(readFileSync(file).equals(damaged)).toBe(true);
  });

  it.each([10, 99, 100, 512, 4_095, 8_192, 40_000])("cut to %i bytes is noticed", async (bytes) => {
    const { data } = await folderWithHistory();
    truncateSync(databaseIn(data), bytes);
    expect(await noticed(data)).toBeDefined();
  });

  it("with any page damaged never passes for sound", async () => {
    const found = await damageEachPage();
    expect(found.size).toBeGreaterThan(20);
    expect([...found].filter(([, notice]) => notice === undefined)).toEqual([]);
  });

  it("with any page damaged says store_corrupt, or the audit lists what is wrong", async () => {
    for (const [page, notice] of await damageEachPage())
      if (notice instanceof Error)
        expect(notice, `page ${page}`).toMatchObject({ name: "StoreError", code: "store_corrupt" });
      else expect(notice, `page ${page}`).toBeInstanceOf(Array);
  });

  it("with an entry that cannot be read is reported by the audit, which goes on", async () => {
    const { data } = await folderWithHistory();
    sql(data, "UPDATE journal SET body = '{' WHERE seq = 3");
    const tidings = await openTidings({ data });
    const { ok, problems } = await tidings.audit();
    expect(ok).toBe(false);
    expect(JSON.stringify(problems)).toContain("3");
  });

  async function auditAfter(statement: string) {
    const { data } = await folderWithHistory();
    sql(data, statement);
    return (await openTidings({ data })).audit();
  }

  it.each([
    "UPDATE notifications SET axes = 'nowhere' WHERE number = 2",
    "UPDATE deliveries SET lease_id = NULL WHERE state = 'LOCKED'",
    "UPDATE journal SET body = '5' WHERE seq = 2",
    "UPDATE journal SET body = '{\"event\":5}' WHERE seq = 2",
    "UPDATE journal SET body = replace(body, 'DELIVERED', 'DELIVERER')",
  ])("with words that nobody wrote is reported by the audit: %s", async (statement) => {
    expect(await auditAfter(statement)).toMatchObject({ ok: false });
  });

  it.each([
    "UPDATE notifications SET data = '{' WHERE data IS NOT NULL",
    "UPDATE journal SET body = '{\"changes\":[{}]}' WHERE type = 'delivery'",
    'UPDATE journal SET body = replace(body, \'"command":"ack"\', \'"command":"nod"\')',
  ])("with words that nobody wrote is reported by the audit, which does not fail: %s", async (statement) => {
    expect(await auditAfter(statement)).toMatchObject({ ok: false });
  });

  it("with its oldest entry lost is reported by the audit (I16)", async () => {
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data });
    for (const source of ["one", "two", "three"]) await tidings.emit({ type: "nobody.listens", source });
    await tidings.close();
    sql(data, "DELETE FROM journal WHERE seq = 1");
    const { problems } = await (await openTidings({ data })).audit();
    expect(problems).toMatchObject([{ rule: "I16" }]);
  });

  it("with a producer's id lost is reported by the audit (I12)", async () => {
    const { data } = await folderWithHistory();
    sql(data, "DELETE FROM producer_ids WHERE producer_id = 'p7'");
    const { ok } = await (await openTidings({ data })).audit();
    expect(ok).toBe(false);
  });

  it("without one of its tables is refused as store_corrupt", async () => {
    const { data } = await folderWithHistory();
    sql(data, "DROP TABLE blocks");
    expect(await failureOf(Tidings.open({ data }))).toMatchObject({ code: "store_corrupt" });
  });

  it("of another program is refused in clear words, its content untouched", async () => {
    const data = await temporaryFolder();
    const file = databaseIn(data);
    const other = new Database(file);
    other.exec("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('https://example.org')");
    other.close();
    const before = readFileSync(file);
    for (const mode of ["write", "read"] as const) {
      const failure = await failureOf(Tidings.open({ data, mode }));
      expect(failure.code).toBe("store_corrupt");
      expect(failure.message).toContain("another program's database");
    }
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it("of another program keeps its permissions", async () => {
    const data = await temporaryFolder();
    const other = new Database(databaseIn(data));
    other.exec("CREATE TABLE bookmarks (url TEXT)");
    other.close();
    chmodSync(databaseIn(data), 0o644);
    await failureOf(Tidings.open({ data }));
    expect(statSync(databaseIn(data)).mode & 0o777).toBe(0o644);
  });

  it("of 0 bytes is a new one", async () => {
    const data = await temporaryFolder();
    writeFileSync(databaseIn(data), "");
    await expectKept(data, []);
  });

  it("of a newer schema is refused with both versions, and left as it is", async () => {
    const { data } = await folderWithHistory();
    sql(data, "PRAGMA user_version = 999");
    const before = readFileSync(databaseIn(data));
    for (const mode of ["write", "read"] as const) {
      const failure = await failureOf(Tidings.open({ data, mode }));
      expect(failure).toMatchObject({ code: "store_newer", retryable: false });
      expect(failure.message).toContain(`has schema version 999, and this program knows ${SCHEMA_VERSION}`);
    }
    expect(readFileSync(databaseIn(data)).equals(before)).toBe(true);
  });

  it("whose log was cut or spoiled after a kill holds a prefix of what was answered, and is sound (I5, I16)", async () => {
    const data = await temporaryFolder();
    await expectKept(data, []);
    const host = await Host.start();
    await host.open({ data });
    const answered: string[] = [];
    for (let number = 0; number < 30; number += 1) answered.push((await host.call<EmitAnswer>("emit", BULKY)).id);
    host.kill("SIGKILL");
    await host.ended;
    const log = readFileSync(`${databaseIn(data)}-wal`);
    const frames = Math.floor((log.length - WAL_HEADER_BYTES) / WAL_FRAME_BYTES);
    expect(frames).toBeGreaterThan(answered.length);

    /** How many of the answered ones are there, in a copy with this log; they must be the first. */
    const kept = async (spoiled: Buffer): Promise<number> => {
      const copy = await temporaryFolder();
      copyFileSync(databaseIn(data), databaseIn(copy));
      writeFileSync(`${databaseIn(copy)}-wal`, spoiled);
      const tidings = await Tidings.open({ data: copy });
      const there = await Promise.all(answered.map(async (id) => !isMiss(await tidings.explain(id))));
      const { problems } = await tidings.audit();
      await tidings.close();
      const first = there.lastIndexOf(true) + 1;
      expect(there).toEqual(answered.map((_, index) => index < first));
      expect(problems).toEqual([]);
      return first;
    };

    expect(await kept(log)).toBe(answered.length);
    expect(await kept(Buffer.concat([log, Buffer.alloc(5_000, 0xa5)]))).toBe(answered.length);
    // Frames that look right and are of an earlier time: their checksums do not follow on.
    const stale = log.subarray(WAL_HEADER_BYTES, WAL_HEADER_BYTES + 3 * WAL_FRAME_BYTES);
    expect(await kept(Buffer.concat([log, stale]))).toBe(answered.length);
    expect(await kept(Buffer.alloc(0))).toBe(0);
    expect(await kept(log.subarray(0, 17))).toBe(0);
    let before = 0;
    for (let part = 0; part <= 8; part += 1) {
      const whole = WAL_HEADER_BYTES + Math.floor((frames * part) / 8) * WAL_FRAME_BYTES;
      for (const cut of [whole, Math.min(log.length, whole + 1_000)]) {
        const now = await kept(log.subarray(0, cut));
        expect(now).toBeGreaterThanOrEqual(before);
        before = now;
        if (cut >= log.length) continue;
        const flipped = Buffer.from(log);
        flipped[cut] = (flipped[cut] ?? 0) ^ 0x01;
        expect(await kept(flipped)).toBeLessThan(answered.length);
      }
    }
    expect(before).toBe(answered.length);
  });

  it("after a restore that was killed midway is the old one or the backup, not an empty one (I6)", async () => {
    const data = join(await temporaryFolder(), "data");
    const tidings = await Tidings.open({ data });
    await tidings.emit(BULKY);
    const copy = join(data, "..", "copy.db");
    await tidings.backup(copy);
    await tidings.emit(BULKY);
    await tidings.close();
    for (let rename = 1; rename <= 4; rename += 1) {
      const folder = join(data, "..", `restored-${rename}`);
      mkdirSync(folder);
      copyFileSync(databaseIn(data), databaseIn(folder));
      restoreKilledAtRename(rename, copy, folder);
      const opened = await Tidings.open({ data: folder });
      const { last_seq } = await opened.facts();
      await opened.close();
      expect(last_seq, `killed at rename ${rename}`).toBeGreaterThan(0);
    }
  });

  it("is restored over what a killed restore left behind", async () => {
    const parent = await temporaryFolder();
    const data = join(parent, "data");
    const tidings = await Tidings.open({ data });
    await tidings.emit(BULKY);
    const older = join(parent, "older.db");
    await tidings.backup(older);
    await tidings.emitMany(Array.from({ length: 100 }, () => BULKY));
    const { id } = await tidings.emit(BULKY);
    const newer = join(parent, "newer.db");
    await tidings.backup(newer);
    await tidings.close();
    // What a process leaves that is killed while it writes into the copy: the copy, and the journal to undo it with.
    const arriving = `${databaseIn(data)}.arriving`;
    copyFileSync(older, arriving);
    dieWriting(arriving);
    expect(existsSync(`${arriving}-journal`)).toBe(true);
    restore(newer, data);
    expect(readdirSync(data).filter((name) => name.includes("arriving"))).toEqual([]);
    await expectKept(data, [id]);
  });

  it("is restored again: the log of what was set aside before does not come to lie beside what is set aside now", async () => {
    const { data, ids } = await folderWithHistory();
    const parent = await temporaryFolder();
    const copy = join(parent, "copy.db");
    const tidings = await Tidings.open({ data });
    await tidings.backup(copy);
    await tidings.close();
    writeFileSync(databaseIn(data), "damaged");
    writeFileSync(`${databaseIn(data)}-wal`, "damaged too");
    restore(copy, data);
    restore(copy, data);
    expect(readdirSync(data).sort()).not.toContain("tidings.db.old-wal");
    const old = join(parent, "old");
    mkdirSync(old);
    copyFileSync(`${databaseIn(data)}.old`, databaseIn(old));
    await expectKept(old, ids);
  });

  it("is backed up into one file and leaves no others beside it", async () => {
    const tidings = await openTidings();
    await tidings.emit(BULKY);
    const folder = await temporaryFolder();
    await tidings.backup(join(folder, "copy.db"));
    expect(readdirSync(folder)).toEqual(["copy.db"]);
  });

  it("that is closed while it is backed up: the copy is whole (I6)", async () => {
    const tidings = await openTidings();
    const ids: string[] = [];
    for (let number = 0; number < 50; number += 1) ids.push((await tidings.emit(BULKY)).id);
    const folder = await temporaryFolder();
    const copying = tidings.backup(databaseIn(folder));
    await tidings.close();
    await copying;
    await expectKept(folder, ids);
  });

  it("is audited in its writer's own process, which goes on meanwhile", async () => {
    const { data } = await folderWithHistory();
    const tidings = await openTidings({ data });
    const order: string[] = [];
    const audited = tidings.audit().then(() => order.push("audited"));
    const emitted = tidings.emit(BULKY).then(() => order.push("emitted"));
    await Promise.all([audited, emitted]);
    expect(order).toEqual(["emitted", "audited"]);
  });
});

const WAL_HEADER_BYTES = 32;
const WAL_FRAME_BYTES = 24 + PAGE_BYTES;

/** As another program would, straight into the file. */
function sql(data: string, statement: string): void {
  const connection = new Database(databaseIn(data));
  try {
    connection.exec(statement);
  } finally {
    connection.close();
  }
}

/** A restore in a process that ends by SIGKILL just before its n-th rename. */
function restoreKilledAtRename(number: number, file: string, folder: string): void {
  const program = `
    import fs from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    const rename = fs.renameSync;
    let left = ${number};
    fs.renameSync = (...paths) => {
      left -= 1;
      if (left === 0) process.kill(process.pid, "SIGKILL");
      return rename(...paths);
    };
    syncBuiltinESMExports();
    const { restoreFrom } = await import(${JSON.stringify(BACKUP_MODULE)});
    await restoreFrom(${JSON.stringify(file)}, ${JSON.stringify(folder)}, true, 0);`;
  const { status, signal, stderr } = run(program);
  if (status !== 0 && signal !== "SIGKILL") throw new Error(String(stderr));
}

const BACKUP_MODULE = new URL("../../dist/store/sqlite/backup.js", import.meta.url).href;

function run(program: string): ReturnType<typeof spawnSync> {
  return spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd: import.meta.dirname });
}

function restore(file: string, folder: string): void {
  const { status, stderr } = run(`
    const { restoreFrom } = await import(${JSON.stringify(BACKUP_MODULE)});
    await restoreFrom(${JSON.stringify(file)}, ${JSON.stringify(folder)}, true, 0);`);
  if (status !== 0) throw new Error(String(stderr));
}

/** A process that is killed in the middle of a transaction, with some of it in the file already. */
function dieWriting(file: string): void {
  const { signal, stderr } = run(`
    import Database from "better-sqlite3";
    const connection = new Database(${JSON.stringify(file)});
    connection.pragma("journal_mode = DELETE");
    connection.pragma("cache_size = 1");
    connection.exec("BEGIN; UPDATE meta SET value = value || ' '; CREATE TABLE filler (x); CREATE TABLE more (x)");
    for (let row = 0; row < 200; row += 1) connection.exec("INSERT INTO filler VALUES (randomblob(2000))");
    process.kill(process.pid, "SIGKILL");`);
  if (signal !== "SIGKILL") throw new Error(String(stderr));
}

describe("a folder that cannot be written", () => {
  it("is refused as read_only, naming the file", async () => {
    const data = await temporaryFolder();
    const folder = join(data, "folder");
    mkdirSync(folder);
    const root = process.getuid?.() === 0;
    // Permissions do not bind root: there, somebody else tries.
    chmodSync(data, 0o755);
    chmodSync(folder, root ? 0o755 : 0o555);
    const host = await Host.start(root ? { uid: NOBODY, gid: NOBODY } : {});
    for (const place of [folder, join(folder, "below")]) {
      const refusal = await refusalOf(host.open({ data: place }));
      expect(refusal).toMatchObject({ name: "StoreError", code: "read_only", retryable: false });
      expect(refusal.message).toContain(place);
    }
    expect(readdirSync(folder)).toEqual([]);
    chmodSync(folder, 0o755);
  });

  it("is a file: refused as read_only, and the file is left as it is", async () => {
    const data = join(await temporaryFolder(), "file");
    writeFileSync(data, "somebody's words");
    for (const place of [data, join(data, "below")])
      expect(await failureOf(Tidings.open({ data: place }))).toMatchObject({ code: "read_only" });
    expect(readFileSync(data, "utf8")).toBe("somebody's words");
  });

  it("is not there, for a reader: a typed error, and it is not made", async () => {
    const data = join(await temporaryFolder(), "nowhere");
    expect(await failureOf(Tidings.open({ data, mode: "read" }))).toMatchObject({ code: "read_only" });
    expect(existsSync(data)).toBe(false);
  });
});

/** The machine's own time, which can be set and which can be made to pass. */
class JumpingClock implements Clock {
  #wallMs = 0;
  #monotonicMs = 0;

  wall(): number {
    return Date.now() + this.#wallMs;
  }

  monotonic(): number {
    return performance.now() + this.#monotonicMs;
  }

  /** Somebody sets the clock, or the machine was suspended. */
  jump(ms: number): void {
    this.#wallMs += ms;
  }

  pass(ms: number): void {
    this.#wallMs += ms;
    this.#monotonicMs += ms;
  }
}

describe("a clock that jumps", () => {
  const stateOf = async (tidings: Tidings, id: string) => {
    const view = await tidings.read(id);
    return isMiss(view) ? view.miss : view.state;
  };
  const becomes = (tidings: Tidings, id: string, state: string) =>
    eventually(
      () => stateOf(tidings, id),
      (now) => now === state,
    );
  async function times(tidings: Tidings): Promise<number[]> {
    const { last_seq } = await tidings.facts();
    const found: number[] = [];
    for await (const entry of tidings.watch({ after: 0 })) {
      found.push(entry.at);
      if (entry.seq >= last_seq) break;
    }
    return found;
  }
  const expectOrdered = (found: number[]) => expect(found).toEqual([...found].sort((one, other) => one - other));

  it("a day ahead gives a holder the time to renew, and ends what nobody took (I20)", async () => {
    const clock = new JumpingClock();
    const tidings = await openTidings({ clock });
    const { id: heldId } = await tidings.notify(FOR_AGENT);
    const { lease, notifications } = await tidings.deliveries.claim({ lease_ms: 60_000 });
    expect(notifications.map(({ id }) => id)).toEqual([heldId]);
    const { id: pendingId } = await tidings.notify(FOR_AGENT);
    const { id: shownId } = await tidings.notify({ content: "shown", target: "user" });
    clock.jump(DAY_MS);
    const renewed = await tidings.deliveries.renew(lease?.id ?? "", 60_000);
    expect(renewed).not.toHaveProperty("miss");
    // Five minutes of an agent item are over; seven days of a shown one are not.
    await becomes(tidings, pendingId, "ESCALATED");
    expect(await stateOf(tidings, shownId)).toBe("DISPATCHED");
    expect(await stateOf(tidings, heldId)).toBe("LOCKED");
    const epoch = notifications[0]?.lease_epoch ?? -1;
    expect(await tidings.deliveries.settle([{ id: heldId, epoch }])).toMatchObject([{ state: "DELIVERED" }]);
    clock.jump(7 * DAY_MS);
    await becomes(tidings, shownId, "FAILED");
    await becomes(tidings, pendingId, "FAILED");
    expectOrdered(await times(tidings));
    expect((await tidings.audit()).problems).toEqual([]);
  });

  it("a day ahead takes the lease of a holder that does not answer, after its grace (I8, I20)", async () => {
    const clock = new JumpingClock();
    const tidings = await openTidings({ clock, policy: { leaseMs: 4_000 } });
    const { id } = await tidings.notify(FOR_AGENT);
    const { notifications } = await tidings.deliveries.claim({ lease_ms: 60_000 });
    clock.jump(DAY_MS);
    await becomes(tidings, id, "ESCALATED");
    const epoch = notifications[0]?.lease_epoch ?? -1;
    expect(await tidings.deliveries.settle([{ id, epoch }])).toMatchObject([{ miss: "stale_lease" }]);
    expect(await stateOf(tidings, id)).toBe("ESCALATED");
  });

  it("a day back lets time go on: ids are made, deadlines come, also after a restart (I8, I20)", async () => {
    const clock = new JumpingClock();
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data, clock });
    const before = await tidings.notify({ ...FOR_AGENT, ttl_ms: 300 });
    clock.jump(-DAY_MS);
    const after = await tidings.notify({ ...FOR_AGENT, ttl_ms: 300 });
    await becomes(tidings, before.id, "ESCALATED");
    await becomes(tidings, after.id, "ESCALATED");
    const { lease } = await (async () => {
      await tidings.notify(FOR_AGENT);
      return tidings.deliveries.claim({ lease_ms: 60_000 });
    })();
    expect(await tidings.deliveries.renew(lease?.id ?? "")).not.toHaveProperty("miss");
    await tidings.close();

    const reopened = await openTidings({ data, clock });
    const later = await reopened.notify({ ...FOR_AGENT, ttl_ms: 300 });
    await becomes(reopened, later.id, "ESCALATED");
    expect(new Set([before.id, after.id, later.id]).size).toBe(3);
    expect(await reopened.deliveries.renew(lease?.id ?? "")).not.toHaveProperty("miss");
    const found = await times(reopened);
    expectOrdered(found);
    expect(found.at(-1)).toBeGreaterThan(clock.wall() + DAY_MS / 2);
    expect((await reopened.audit()).problems).toEqual([]);
  });

  it("a day back does not turn time back to the oldest thing that was not pruned (I20)", async () => {
    const clock = new JumpingClock();
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data, clock });
    await tidings.notify({ content: "waits for its agent" });
    clock.pass(60_000);
    const { id } = await tidings.notify({ content: "shown", target: "user" });
    await tidings.ack({ id, revision: 1, action: "clicked" });
    const [last = 0] = (await times(tidings)).slice(-1);
    clock.pass(1_000);
    expect(await tidings.prune({ older_than_ms: 0 })).toMatchObject({ notifications: 1 });
    await tidings.close();
    clock.jump(-DAY_MS);
    const reopened = await openTidings({ data, clock });
    await reopened.emit(BULKY);
    expect((await times(reopened)).at(-1)).toBeGreaterThanOrEqual(last);
  });
});

describe("a process that stops", () => {
  it("for three times its lease is told stale_lease when it goes on, and changes nothing (I1, I3)", async () => {
    const leaseMs = 700;
    const data = await temporaryFolder();
    const host = await Host.start();
    const { pid } = await host.open({ data });
    const { id } = await host.call<Notification>("notify", FOR_AGENT);
    const { notifications } = await host.call<{ notifications: Notification[] }>("deliveries.claim", {
      lease_ms: leaseMs,
    });
    expect(notifications).toMatchObject([{ id, state: "LOCKED", lease_epoch: 1 }]);
    host.kill("SIGSTOP");
    await eventually(
      async () => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0],
      (state) => state === "T",
    );
    // It will find this in its input the moment it wakes, before its watchdog has looked at anything.
    const settled = host.call<(Notification | Miss)[]>("deliveries.settle", [{ id, epoch: 1 }]);
    await delay(3 * leaseMs);
    host.kill("SIGCONT");
    expect(await settled).toMatchObject([{ miss: "stale_lease", id }]);
    const view = await eventually(
      () => host.call<Notification>("read", id),
      ({ state }) => state === "ESCALATED",
    );
    expect(view).toMatchObject({ lease_epoch: 2, channel: "inbox", reason: "lease_expired" });
    expect(await host.call("deliveries.settle", [{ id, epoch: 1 }])).toMatchObject([{ miss: "stale_lease" }]);
    expect(await host.call("read", id)).toEqual(view);
    expect(await host.call("audit")).toMatchObject({ ok: true });
  });
});

describe("a writer around the guards", () => {
  it("is stopped by the database itself: a settled state, a lower epoch, a move that the grid does not have (I2, I4)", async () => {
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data });
    const shown = await tidings.notify({ content: "shown", target: "user" });
    await tidings.ack({ id: shown.id, revision: 1, action: "rendered" });
    await tidings.notify(FOR_AGENT);
    await tidings.deliveries.claim();
    await tidings.close();
    const forbidden = [
      ...["PENDING", "DISPATCHED", "LOCKED", "ESCALATED", "FAILED", "SUPPRESSED"].map(
        (state) => `UPDATE deliveries SET state = '${state}' WHERE state = 'DELIVERED'`,
      ),
      "UPDATE deliveries SET lease_epoch = lease_epoch - 1 WHERE state = 'LOCKED'",
      "UPDATE deliveries SET lease_epoch = 0 WHERE state = 'DELIVERED'",
      "UPDATE deliveries SET state = 'FAILED' WHERE state = 'LOCKED'",
    ];
    for (const statement of forbidden)
      expect(() => sql(data, statement), statement).toThrow("illegal change of a delivery");
    expect(() => sql(data, "UPDATE deliveries SET state = 'LOST' WHERE state = 'LOCKED'")).toThrow();
    await expectKept(data, []);
  });
});

describe("closing", () => {
  it("answers every emit that came before it: ten thousand, not awaited (I6)", async () => {
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data });
    const emits = Array.from({ length: 10_000 }, (_, number) =>
      tidings.emit({ type: "nobody.listens", source: `s${number % 9}`, payload: { number } }),
    );
    await tidings.close();
    const answers = await Promise.all(emits);
    expect(new Set(answers.map(({ id }) => id)).size).toBe(10_000);
    expect(Math.max(...answers.map(({ seq }) => seq))).toBe(10_000);
    await expectKept(
      data,
      answers.filter((_, index) => index % 50 === 0).map(({ id }) => id),
    );
  });

  it("amid a load answers each operation, or says closed; what was answered is there (I6)", async () => {
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data });
    const { answered, refusals } = await (async () => {
      const load = emitUntilRefused(tidings, 40);
      await eventually(
        () => tidings.facts(),
        ({ last_seq }) => last_seq > 400,
      );
      await tidings.close();
      return load;
    })();
    expect(answered.length).toBeGreaterThan(400);
    expect(refusals).toHaveLength(40);
    for (const refusal of refusals) expect(refusal).toMatchObject({ name: "TidingsError", code: "closed" });
    await expectKept(data, answered);
    const reopened = await openTidings({ data });
    // One of them is expectKept's own.
    expect((await reopened.facts()).last_seq).toBe(answered.length + 1);
  });

  it("twice is closing once, and everything afterwards says closed", async () => {
    const tidings = await Tidings.open({ data: await temporaryFolder() });
    await Promise.all([tidings.close(), tidings.close()]);
    await tidings.close();
    for (const asked of [tidings.emit(BULKY), tidings.list(), tidings.audit(), tidings.deliveries.claim()])
      expect(await failureOf(asked)).toMatchObject({ code: "closed" });
  });

  it("again, while a backup holds the first up, is answered when the folder is free", async () => {
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data });
    await tidings.emitMany(Array.from({ length: 5_000 }, () => BULKY));
    const copying = tidings.backup(join(await temporaryFolder(), "copy.db"));
    const first = tidings.close();
    await turn();
    await tidings.close();
    const next = await Tidings.open({ data, wait_ms: 0 }).finally(() => Promise.all([first, copying]));
    await next.close();
  });

  it("while it prunes and closes a thread leaves the rest to be done after the next opening (I5, I7)", async () => {
    const data = await temporaryFolder();
    const tidings = await Tidings.open({ data });
    const told = Array.from({ length: 600 }, (_, number) => tidings.notify({ content: `${number}`, thread_id: "one" }));
    await Promise.all(told);
    const cut = [tidings.closeThread("one"), tidings.prune({ older_than_ms: 0 })].map(failureOf);
    await tidings.close();
    for (const failure of await Promise.all(cut)) expect(failure).toMatchObject({ code: "closed" });
    const reopened = await openTidings({ data });
    const { notifications } = await reopened.list({ limit: 1_000 });
    expect(notifications).toHaveLength(600);
    expect(notifications.filter(({ state }) => state !== "SUPPRESSED")).toEqual([]);
    expect((await reopened.audit()).problems).toEqual([]);
  });
});

describe("pruning", () => {
  it("forgets no part of an event that a producer may send again: it is answered duplicate (I12)", async () => {
    const tidings = await openTidings({
      subscribers: [
        { id: "shown", types: ["load.both"], routing: { address: "user", target: "user", handler: "system" } },
        { id: "passive", types: ["load.both"] },
      ],
    });
    const event = { type: "load.both", source: "ci", id: "p1" };
    const first = await tidings.emit(event);
    const shown = first.matches.find((match) => match.subscriber_id === "shown")?.notification;
    await tidings.ack({ id: shown?.id ?? "", revision: 1, action: "clicked" });
    await eventually(
      () => tidings.prune({ older_than_ms: 0 }),
      (done) => done.notifications > 0,
    );
    expect(await tidings.emit(event)).toMatchObject({ outcome: "duplicate", id: first.id });
  });

  it("between an observation and the end of its thread leaves a store that the audit finds sound (I5)", async () => {
    const clock = new JumpingClock();
    const tidings = await openTidings({ clock });
    await tidings.startThread({ thread_id: "one" });
    await tidings.observe({ thread_id: "one", subject: "h_1" });
    clock.pass(60_000);
    await tidings.closeThread("one");
    await tidings.prune({ older_than_ms: 30_000 });
    expect((await tidings.audit()).problems).toEqual([]);
    clock.pass(60_000);
    await tidings.prune({ older_than_ms: 30_000 });
    expect((await tidings.audit()).problems).toEqual([]);
  });

  it("after the end of a thread, of which something still waits, leaves one that the audit finds sound (I5)", async () => {
    const clock = new JumpingClock();
    const tidings = await openTidings({ clock });
    await tidings.notify({ content: "shown", target: "user", thread_id: "one" });
    await tidings.closeThread("one");
    clock.pass(60_000);
    const { entries } = await tidings.prune({ older_than_ms: 30_000 });
    expect(entries).toBeGreaterThan(0);
    expect((await tidings.audit()).problems).toEqual([]);
  });

  it("leaves a journal that is watched from its beginning to its end, over all that was kept (I16)", async () => {
    const clock = new JumpingClock();
    const tidings = await openTidings({ clock });
    const { id: settled } = await tidings.notify({ content: "settled", target: "user" });
    await tidings.ack({ id: settled, revision: 1, action: "clicked" });
    const kept = await tidings.emitMany(Array.from({ length: 600 }, () => BULKY));
    clock.pass(60_000);
    expect(await tidings.prune({ older_than_ms: 30_000 })).toMatchObject({ entries: 2 });
    const last = await tidings.emit(BULKY);
    let seen = 0;
    for await (const entry of tidings.watch({ after: 0 })) {
      seen += 1;
      if (entry.seq >= last.seq) break;
    }
    expect(seen).toBe(kept.length + 1);
  });
});
