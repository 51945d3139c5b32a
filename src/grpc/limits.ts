// Every number that bounds a server or a channel, with the value it has unless told otherwise.

const MIB = 1_048_576;

/** What bounds messages; servers and channels have these. */
export interface MessageLimits {
  /** Largest message received, as it is on the wire and after decompression. */
  readonly receiveMessageBytes: number;
  /** Largest message sent. */
  readonly sendMessageBytes: number;
  /** Largest size that a compressed message may unfold to. */
  readonly maxDecompressedBytes: number;
  /** Sum of all ordinary messages above 64 KiB that are being collected or that wait to be sent. */
  readonly heldMessageBytes: number;
}

/** What bounds a server. */
export interface ServerLimits extends MessageLimits {
  /** Largest header list that a client may send, counted as HTTP/2 counts it. */
  readonly maxHeaderListBytes: number;
  readonly maxConcurrentStreams: number;
  readonly maxConnections: number;
  readonly maxConnectionsPerAddress: number;
  /** Calls in progress on the whole server; one more is answered RESOURCE_EXHAUSTED. */
  readonly maxCalls: number;
  /** Receive window of a stream while few are open. */
  readonly streamWindowBytes: number;
  /** What the windows of all open request streams may sum to: windows shrink as streams grow in number. */
  readonly streamWindowsTotalBytes: number;
  /** Bytes of large replies that may wait on one connection; from half of it on, the connection's new calls are refused before their work. */
  readonly heldPerConnectionBytes: number;
  /** A message or unary request under way must arrive at this many bytes a second, counted over `progressWindowMs`. */
  readonly minimumBytesPerSecond: number;
  readonly progressWindowMs: number;
  /** A reply of which the client took nothing for this long is given up. */
  readonly sendStallMs: number;
  /** TLS handshake and first HTTP/2 settings must be complete by then. */
  readonly handshakeMs: number;
  /** A connection on which nothing arrived for this long is pinged. */
  readonly keepaliveMs: number;
  /** And closed when the ping is not answered in this time. */
  readonly keepaliveTimeoutMs: number;
}

/** What bounds a channel. */
export interface ChannelLimits extends MessageLimits {
  readonly maxHeaderListBytes: number;
  readonly streamWindowBytes: number;
  readonly connectMs: number;
  /** Calls that wait for a connection; one more fails with UNAVAILABLE. */
  readonly maxWaitingCalls: number;
}

/** Pings of a channel: after how much silence, and how long an answer may take. Without it a channel sends none. */
export interface ChannelKeepalive {
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

/** Waiting times between attempts to connect. */
export interface Backoff {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly multiplier: number;
  /** The part of each wait that is random: 0.2 means ±20 %. */
  readonly jitter: number;
}

const MESSAGE_LIMITS: MessageLimits = {
  receiveMessageBytes: 8 * MIB,
  sendMessageBytes: 8 * MIB,
  maxDecompressedBytes: 8 * MIB,
  heldMessageBytes: 128 * MIB,
};

/** A server's limits unless told otherwise. */
export const DEFAULT_SERVER_LIMITS: ServerLimits = {
  ...MESSAGE_LIMITS,
  maxHeaderListBytes: 16_384,
  maxConcurrentStreams: 100,
  maxConnections: 1_000,
  maxConnectionsPerAddress: 200,
  maxCalls: 2_000,
  streamWindowBytes: MIB,
  streamWindowsTotalBytes: 64 * MIB,
  heldPerConnectionBytes: 32 * MIB,
  minimumBytesPerSecond: 1_024,
  progressWindowMs: 10_000,
  sendStallMs: 120_000,
  handshakeMs: 10_000,
  keepaliveMs: 60_000,
  keepaliveTimeoutMs: 20_000,
};

/** A channel's limits unless told otherwise. */
export const DEFAULT_CHANNEL_LIMITS: ChannelLimits = {
  ...MESSAGE_LIMITS,
  maxHeaderListBytes: 65_536,
  // A client has few streams and may be far away, or not get its turn on a busy machine.
  streamWindowBytes: 4 * MIB,
  connectMs: 10_000,
  maxWaitingCalls: 10_000,
};

/** A channel's waiting times unless told otherwise. */
export const DEFAULT_BACKOFF: Backoff = { initialMs: 200, maxMs: 30_000, multiplier: 1.6, jitter: 0.2 };

/** Most bytes of one stream that are handed to HTTP/2 at a time: a reader that never reads holds no more. */
export const SEND_WINDOW_BYTES: number = 256 * 1_024;
/** Most bytes of one stream that wait for a consumer before the stream is paused. */
export const RECEIVE_QUEUE_BYTES: number = 256 * 1_024;
/** Messages up to this size are not counted against `heldMessageBytes`. */
export const SMALL_MESSAGE_BYTES: number = 64 * 1_024;
/** Receive window of a whole connection; streams are bounded one by one. */
export const SESSION_WINDOW_BYTES: number = 64 * MIB;
/** MiB that node:http2 lets a session hold; its default of 10 refuses streams while large writes wait. */
export const SESSION_MEMORY_MIB = 64;
/** Window that no stream falls below, however many are open. */
export const STREAM_WINDOW_MIN_BYTES = 65_535;
/** Largest frame we accept. Peers other than node:http2 make use of it. */
export const FRAME_BYTES: number = 64 * 1_024;
/** A call that has ended and whose stream the peer leaves open is reset after this time. */
export const LINGER_MS = 5_000;
/** How often progress, keepalive and lingering streams are looked at. */
export const SWEEP_MS = 1_000;
/** How often a call that no server has looked at is sent again by itself. */
export const TRANSPARENT_RETRIES = 3;
/** Large messages that a server or channel unfolds at a time; waiting ones are bounded by the calls in progress. */
export const UNFOLDED_AT_ONCE = 2;
/** Replies of megabytes that one connection may have in the making or unread: enough for a disk, too few to fill the memory. */
export const BULKY_CALLS_AT_ONCE = 4;
/** Calls that one connection may begin in a turn of the event loop: some milliseconds of work. More wait for the next, and it is not read meanwhile. */
export const CONNECTION_CALLS_PER_TURN = 32;
/** And those that all connections together may. */
export const CALLS_PER_TURN = 64;
/** What beginning a call costs that takes or gives megabytes: room for the first of them is made at once. */
export const BULKY_CALL_COST = 8;
/** Names and values of headers, above which a call counts as several of those. */
export const COSTLY_HEADERS = 32;
/** Bytes that a connection may send at once that reach no call: what a client sends beside its calls is a small part of it. */
export const FLOOD_BURST_BYTES: number = 256 * 1_024;
/** And those that it may send every second. */
export const FLOOD_BYTES_PER_SECOND: number = MIB;
/** What a frame may take on the wire beside what it carries: its head, padding, and TLS. */
export const FRAME_COST_BYTES = 300;
/** Bytes that may still come for calls that take no more, all of a connection together. */
export const LATE_BYTES: number = 8 * MIB;
/** For so many bytes that a client receives, it may send one more to move its windows: 26 bytes for each frame of 16 KiB, and four times that. */
export const WRITTEN_PER_UPDATE_BYTE = 128;
/** How often connections are looked at for floods, in the first second of each and for a time after each flood; every second otherwise. */
export const FLOOD_WATCH_MS = 5;
/** That first second. */
export const YOUNG_CONNECTION_MS = 1_000;
/** And that time. */
export const AFTER_FLOOD_MS = 60_000;
/** Calls of one connection that its client may give up at once; one more ends the connection. Four times as many as it may have open. */
export const RESETS_AT_ONCE = 400;
/** And those that it may give up every second besides. */
export const RESETS_PER_SECOND = 100;
/** Closed sessions of a server that are kept until their streams are collected: 22 KB each, so 44 MB where none is collected. */
export const CLOSED_SESSIONS_KEPT = 2_000;
