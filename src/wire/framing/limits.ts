// Every number that bounds a server or a channel, with the value it has unless told otherwise.
import type { BucketRate } from "#base/token-buckets.ts";

const MIB = 1_048_576;

/** What bounds a message received. */
export interface ReceiveLimits {
  /** Largest size, as it is on the wire and after decompression. */
  readonly receiveMessageBytes: number;
  /** Most fields, those of messages within it, list elements and unknown ones counted. */
  readonly receiveFields: number;
}

/** What bounds messages; servers and channels have these. */
export interface MessageLimits extends ReceiveLimits {
  /** Largest message sent. */
  readonly sendMessageBytes: number;
  /** Largest size that a compressed message may unfold to. */
  readonly maxDecompressedBytes: number;
}

/** What bounds a server. */
export interface ServerLimits extends MessageLimits {
  /** Largest header list that a client may send, counted as HTTP/2 counts it. */
  readonly maxHeaderListBytes: number;
  /** Calls that one connection may have in progress; a client may open `STREAMS_PER_PLACE` times as many streams, which then wait. */
  readonly maxConcurrentStreams: number;
  readonly maxConnections: number;
  readonly maxConnectionsPerAddress: number;
  /** Connections of those who have proven nothing; for one more the oldest of the network that has most of them is closed. */
  readonly unprovenConnections: number;
  /** A connection of theirs on which no call was in progress for this long is closed. */
  readonly unprovenIdleMs: number;
  /** Calls of users in progress; one more is answered RESOURCE_EXHAUSTED. */
  readonly maxCalls: number;
  /** Those of one user. */
  readonly callsPerParty: number;
  /** The part of `maxCalls` that is left to users with few calls. */
  readonly spareCalls: number;
  /** Calls in progress, or still arriving, of those who have proven nothing. */
  readonly unprovenCalls: number;
  /** Those from one network. */
  readonly unprovenCallsPerNetwork: number;
  /** Receive window of a stream while few are open. */
  readonly streamWindowBytes: number;
  /** What the windows of all open request streams may sum to: windows shrink as streams grow in number. */
  readonly streamWindowsTotalBytes: number;
  /** Sum of all requests above 64 KiB that are being collected; more wait, users in turn. */
  readonly heldRequestBytes: number;
  /** Sum of all replies above 64 KiB that wait to be sent. */
  readonly heldReplyBytes: number;
  /** Bytes of large replies that may wait on one connection; from half of it on, the connection's new calls are refused before their work. */
  readonly heldPerConnectionBytes: number;
  /** A message or unary request under way must arrive at this many bytes a second, counted over `progressWindowMs`. */
  readonly minimumBytesPerSecond: number;
  readonly progressWindowMs: number;
  /** A unary request must have arrived whole by then; time that it waits for room does not count. */
  readonly requestMs: number;
  /** That of a caller who has proven nothing. */
  readonly unprovenRequestMs: number;
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
  /** Sum of all ordinary messages above 64 KiB that are being collected or that wait to be sent. */
  readonly heldMessageBytes: number;
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
  receiveFields: 8 * MIB,
  sendMessageBytes: 8 * MIB,
  maxDecompressedBytes: 8 * MIB,
};

/** A server's limits unless told otherwise. */
export const DEFAULT_SERVER_LIMITS: ServerLimits = {
  ...MESSAGE_LIMITS,
  maxHeaderListBytes: 16_384,
  maxConcurrentStreams: 100,
  maxConnections: 1_000,
  maxConnectionsPerAddress: 200,
  unprovenConnections: 600,
  unprovenIdleMs: 30_000,
  maxCalls: 2_000,
  callsPerParty: 1_000,
  spareCalls: 500,
  unprovenCalls: 400,
  unprovenCallsPerNetwork: 200,
  streamWindowBytes: MIB,
  streamWindowsTotalBytes: 64 * MIB,
  heldRequestBytes: 48 * MIB,
  heldReplyBytes: 80 * MIB,
  heldPerConnectionBytes: 32 * MIB,
  minimumBytesPerSecond: 1_024,
  progressWindowMs: 10_000,
  requestMs: 120_000,
  unprovenRequestMs: 10_000,
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
  heldMessageBytes: 128 * MIB,
  maxWaitingCalls: 10_000,
};

/** A channel's waiting times unless told otherwise. */
export const DEFAULT_BACKOFF: Backoff = { initialMs: 200, maxMs: 30_000, multiplier: 1.6, jitter: 0.2 };

/** Most bytes of one stream that are handed to HTTP/2 at a time: a reader that never reads holds no more. */
export const SEND_WINDOW_BYTES: number = 256 * 1_024;
/** Most bytes of one stream that wait for a consumer before the stream is paused. */
export const RECEIVE_QUEUE_BYTES: number = 256 * 1_024;
/** What bounds a request that anybody may send. */
export const SMALL_REQUEST: ReceiveLimits = { receiveMessageBytes: 4 * 1_024, receiveFields: 64 };
/** Messages up to this size are not counted where those are that are held. */
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
/** And those that all may where several begin some. */
export const SHARED_CALLS_PER_TURN = 24;
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
/** Streams that a client may open for each call that it may have in progress: the others are for those that it has just given up. */
export const STREAMS_PER_PLACE = 2;
/** Streams of one connection that its client may give up at once; one more ends the connection. Three times as many as it may have open. */
export const RESETS_AT_ONCE = 600;
/**
 * And those that it may give up every second besides: a client that asks two servers each time, and gives up the slower, is no attacker.
 * nghttp2 counts whole seconds and saves no more up than `RESETS_AT_ONCE`, which must therefore not be less.
 */
export const RESETS_PER_SECOND = 500;
/** Closed sessions that wait for a whole collection, 50 KB each, before it is asked for at once. */
export const CLOSED_SESSIONS_KEPT = 2_000;
/** Before it is asked for where the last one was COLLECTED_AT_MOST_EVERY_MS ago: it takes some 50 ms, which everybody waits. */
export const CLOSED_SESSIONS_MANY = 500;
/** That time. */
export const COLLECTED_AT_MOST_EVERY_MS = 5_000;
/** Users' calls whose requests are still coming. */
export const ARRIVING_CALLS = 4_000;
/** Calls of nodes in progress, and as many of theirs as arrive: nobody else takes these places. */
export const NODE_CALLS = 1_000;
/** Those of one node. */
export const CALLS_OF_NODE = 64;
/** Who has at most so many calls may take of what is left to those with few. */
export const MODEST_CALLS = 64;
/** The parts of the bytes held of requests, or of replies, that one user may have, and that are left to users with few; few is an eighth. */
export const BYTES_OF_PARTY: number = 1 / 2;
export const SPARE_BYTES: number = 1 / 4;
export const MODEST_BYTES: number = 1 / 8;
/** Connections of nodes beside `maxConnections`. */
export const NODE_CONNECTIONS = 200;
/** Connections of one user; those beyond count as if they had proven nothing. */
export const CONNECTIONS_OF_USER = 64;
/** Calls that a connection may begin in a turn of the event loop where all who share it have proven nothing. */
export const UNPROVEN_CALLS_PER_TURN = 16;
/** Bytes that are read of all connections in a turn of the event loop where several bring some: some milliseconds of work. */
export const READ_BYTES_PER_TURN: number = 512 * 1_024;
/** Of each connection at least so much. */
export const READ_BYTES_PER_TURN_MIN: number = 64 * 1_024;
/** Refused calls, with nothing proven in between, after which a connection is told to go (GOAWAY). */
export const REFUSALS_PER_CONNECTION = 20;
/** Handshakes of one network (an IPv4 address, the /64 of an IPv6 one): at once, and every second. */
export const HANDSHAKES_OF_NETWORK: BucketRate = { burst: 256, perSecond: 20 };
/** Those of a site (/24, /48). */
export const HANDSHAKES_OF_SITE: BucketRate = { burst: 1_024, perSecond: 80 };
/** And those of everybody. */
export const HANDSHAKES_OF_ALL: BucketRate = { burst: 2_000, perSecond: 200 };
/** What a connection without TLS counts, in handshakes. */
export const PLAIN_HANDSHAKE_COST = 0.1;
/** What one counts from a network where somebody has proven something in the last hour. */
export const PROVEN_HANDSHAKE_COST = 0.25;
/** That hour. */
export const PROVEN_NETWORK_MS = 3_600_000;
/** Networks that are remembered for it. */
export const PROVEN_NETWORKS_KEPT = 10_000;
/** Work for nothing that callers of one network who have proven nothing may cause, in bytes: at once, and every second. */
export const UNPROVEN_LOAD_OF_NETWORK: BucketRate = { burst: 8 * MIB, perSecond: 512 * 1_024 };
/** And all of them together. */
export const UNPROVEN_LOAD_OF_ALL: BucketRate = { burst: 64 * MIB, perSecond: 4 * MIB };
/** A connection that has caused no more than this is not ended for what others of its network do: they may share an address. */
export const UNPROVEN_LOAD_OF_CONNECTION: number = 32 * 1_024;
/** What a refusal, or a call given up, counts beside its headers. */
export const REFUSAL_LOAD_BYTES = 2_048;
