/**
 * Bounds on everything that clients of the server send, ask for and make wait: what holds without a word, and between which
 * values each may be set, in `[server.limits]` or by a program. Pinned by tests; part of the documented contract.
 */
import { z } from "zod";
import { InvalidInputError } from "../domain/errors.js";
import { didYouMean } from "../domain/nearest.js";

interface Setting {
  readonly preset: number;
  readonly min: number;
  readonly max: number;
}

const BYTES_MAX = 1_073_741_824;
const COUNT_MAX = 1_000_000;
const DAY_MS = 86_400_000;

const bytes = (preset: number, min = 1_024): Setting => ({ preset, min, max: BYTES_MAX });
const count = (preset: number, max = COUNT_MAX): Setting => ({ preset, min: 1, max });
const milliseconds = (preset: number, min = 10): Setting => ({ preset, min, max: DAY_MS });

const SETTINGS = {
  /** Of the head of a request. */
  headerBytes: bytes(16_384),
  /** Of a request's body, and in how many pieces it may come. */
  bodyBytes: bytes(1_048_576),
  bodyPieces: count(16_384),
  /** Of what is sent as JSON, by whichever way: how deep it may be nested, and how many keys and elements it may have. */
  jsonDepth: { preset: 64, min: 8, max: 500 },
  jsonKeys: { preset: 100_000, min: 16, max: 100_000_000 },
  /** Of the bodies of one token that are not answered yet, and of its answers that are not read yet. */
  tokenBytes: bytes(67_108_864),
  /** In one `POST /v1/events`. */
  eventsPerRequest: count(1_000, 100_000),
  /** Of one CloudEvent. */
  attributesPerEvent: count(100, 10_000),
  /** Of one request to a hook: a sender that changes its secret signs with both for a while. */
  signaturesPerRequest: count(16, 1_000),
  /** In one JSON-RPC batch. */
  callsPerBatch: count(100, 10_000),
  /** Of an answer to a list or a batch: the list is cut there and goes on with `next`, later calls are not run. */
  answerBytes: bytes(8_388_608),
  /** The same for a stream. */
  messageAnswerBytes: bytes(262_144),
  /**
   * Of a message that the client of a stream sends; over a WebSocket also of how many frames it may be made, and in how
   * many pieces come.
   */
  messageBytes: bytes(65_536),
  messageFragments: count(64),
  messagePieces: count(1_024),
  /** What may wait for the client of a stream that reads slowly, before it is sent away. */
  outgoingBytes: bytes(1_048_576, 4_096),
  /** Calls of one stream that are not answered yet; a batch is one. */
  callsPerSocket: count(64),
  /** Calls that wait for something to happen; and those of one user. */
  waits: count(1_000),
  waitsPerUser: count(100),
  /** Streams; and those of one user. */
  sockets: count(10_000),
  socketsPerUser: count(2_000),
  /** Connections of every kind, of one address: of IPv6 the network, which is one's own. */
  connectionsPerAddress: count(5_000),
  /** Requests of one connection that wait for the answer to another before them. */
  requestsWaiting: count(100),
  /** Items that a client is sent when it connects. */
  itemsAtConnect: count(100, 1_000),
  /** How often a stream says where it is. */
  heartbeatMs: milliseconds(15_000),
  /** How often a quiet client is asked whether it is there, and how long it may take to say so. */
  pingMs: milliseconds(30_000),
  pongMs: milliseconds(10_000),
  /** After the end of a stream was told, how long its client may take to agree. */
  closeMs: milliseconds(2_000),
  /** Events and calls a second of one token, and how many may come at once after a quiet while. */
  ratePerSecond: count(10_000),
  rateBurst: count(20_000, 10 * COUNT_MAX),
  /** Tries without a good token, of one address. */
  refusalsPerSecond: count(10),
  refusalsBurst: count(100),
  /** Events that wait for their commit. */
  eventsWaiting: count(10_000),
  /** To send the head of a request, and to send all of it; also how long the reading of an answer may stand still. */
  headersMs: milliseconds(10_000),
  requestMs: milliseconds(30_000),
  /** How long a connection is kept for a next request. */
  keepAliveMs: milliseconds(5_000),
  /** From the first word of its end, by `/readyz`, to where no connection is taken any more. */
  drainDelayMs: milliseconds(50, 0),
  /** How long the end then waits for requests, and calls of streams, that are under way. */
  drainMs: milliseconds(10_000, 0),
} satisfies Record<string, Setting>;

type Name = keyof typeof SETTINGS;

export type ServerLimits = { readonly [Key in Name]: number };

const NAMES = Object.keys(SETTINGS) as Name[];

export const SERVER_LIMITS = Object.fromEntries(NAMES.map((name) => [name, SETTINGS[name].preset])) as ServerLimits;

/** As `tidings.toml` calls it: `body_bytes`. */
export function limitKey(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function settingSchema({ min, max }: Setting) {
  const range = `must be a whole number from ${min} to ${max}`;
  return z.int(range).min(min, range).max(max, range);
}

export const serverLimitsSchema = z.strictObject(
  Object.fromEntries(NAMES.map((name) => [limitKey(name), settingSchema(SETTINGS[name]).optional()])),
);

/** What `[server.limits]` says. */
export function limitsOf(table: Readonly<Record<string, number | undefined>>): Partial<ServerLimits> {
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = table[limitKey(name)];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** As a program sets them. */
export function checkLimits(limits: Readonly<Record<string, unknown>>): Partial<ServerLimits> {
  for (const [name, value] of Object.entries(limits)) {
    if (!Object.hasOwn(SETTINGS, name))
      throw new InvalidInputError(`limits.${name}`, `is not a known limit${didYouMean(name, NAMES)}`);
    const { min, max } = SETTINGS[name as Name];
    if (value !== undefined && !(Number.isInteger(value) && (value as number) >= min && (value as number) <= max))
      throw new InvalidInputError(`limits.${name}`, `must be a whole number from ${min} to ${max}`);
  }
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}
