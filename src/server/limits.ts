/** A bound on everything that clients send, ask for and make wait. Pinned by tests; part of the documented contract. */
export interface ServerLimits {
  /** Of a request's body, and in how many pieces it may come. */
  readonly bodyBytes: number;
  readonly bodyPieces: number;
  /** Of the bodies of one token that are not answered yet, and of its answers that are not read yet. */
  readonly tokenBytes: number;
  /** In one `POST /v1/events`. */
  readonly eventsPerRequest: number;
  /** In one JSON-RPC batch. */
  readonly callsPerBatch: number;
  /** Of an answer to a list or a batch: the list is cut there and goes on with `next`, later calls are not run. */
  readonly answerBytes: number;
  /** The same for a WebSocket. */
  readonly messageAnswerBytes: number;
  /** Of a message that a WebSocket client sends, of how many frames it may be made, and in how many pieces come. */
  readonly messageBytes: number;
  readonly messageFragments: number;
  readonly messagePieces: number;
  /** What may wait for a WebSocket client that reads slowly, before it is sent away. */
  readonly outgoingBytes: number;
  /** Calls of one WebSocket that are not answered yet. */
  readonly callsPerSocket: number;
  /** Calls that wait for something to happen; and those of one user. */
  readonly waits: number;
  readonly waitsPerUser: number;
  /** Connections; and those of one user. */
  readonly sockets: number;
  readonly socketsPerUser: number;
  /** Items that a client is sent when it connects. */
  readonly itemsAtConnect: number;
  /** How often a quiet client is asked whether it is there, and how long it may take to say so. */
  readonly pingMs: number;
  readonly pongMs: number;
  /** Events and calls a second of one token, and how many may come at once after a quiet while. */
  readonly ratePerSecond: number;
  readonly rateBurst: number;
  /** Tries without a good token, of one address. */
  readonly refusalsPerSecond: number;
  readonly refusalsBurst: number;
  /** Events that wait for their commit. */
  readonly eventsWaiting: number;
  /** To send the head of a request, and to send all of it; also how long the reading of an answer may stand still. */
  readonly headersMs: number;
  readonly requestMs: number;
  /** How long the end waits for requests that are under way. */
  readonly drainMs: number;
}

export const DEFAULT_PORT = 4747;
/** This machine only. */
export const DEFAULT_HOST = "127.0.0.1";

export const SERVER_LIMITS: ServerLimits = {
  bodyBytes: 1_048_576,
  bodyPieces: 16_384,
  tokenBytes: 67_108_864,
  eventsPerRequest: 1_000,
  callsPerBatch: 100,
  answerBytes: 8_388_608,
  messageAnswerBytes: 262_144,
  messageBytes: 65_536,
  messageFragments: 64,
  messagePieces: 1_024,
  outgoingBytes: 1_048_576,
  callsPerSocket: 64,
  waits: 1_000,
  waitsPerUser: 100,
  sockets: 10_000,
  socketsPerUser: 2_000,
  itemsAtConnect: 100,
  pingMs: 30_000,
  pongMs: 10_000,
  ratePerSecond: 10_000,
  rateBurst: 20_000,
  refusalsPerSecond: 10,
  refusalsBurst: 100,
  eventsWaiting: 10_000,
  headersMs: 10_000,
  requestMs: 30_000,
  drainMs: 10_000,
};
