// Limits of servers and channels with their default values.
import type { BucketRate } from "#base/token-buckets.ts";

const MIB = 1_048_576;

/** Limits of a received message. */
export interface ReceiveLimits {
  /** Largest size, both compressed and decompressed. */
  readonly receiveMessageBytes: number;
  /** Most fields, including those of nested messages, list elements and unknown fields. */
  readonly receiveFields: number;
}

/** Message limits of servers and channels. */
export interface MessageLimits extends ReceiveLimits {
  /** Largest message sent. */
  readonly sendMessageBytes: number;
  /** Largest size that a compressed message may unfold to. */
  readonly maxDecompressedBytes: number;
}

/** Limits of a server. */
export interface ServerLimits extends MessageLimits {
  /** Largest header list that a client may send, counted as HTTP/2 counts it. */
  readonly maxHeaderListBytes: number;
  /**
   * Concurrent calls per connection; clients may open `STREAMS_PER_PLACE` times as many streams, which wait.
   */
  readonly maxConcurrentStreams: number;
  readonly maxConnections: number;
  readonly maxConnectionsPerAddress: number;
  /** Unproven connections; one more closes the oldest of the network that has most of them. */
  readonly unprovenConnections: number;
  /** An unproven connection without a call in progress is closed after this time. */
  readonly unprovenIdleMs: number;
  /** Concurrent calls of users; one more is answered RESOURCE_EXHAUSTED. */
  readonly maxCalls: number;
  /** Concurrent calls of one user. */
  readonly callsPerParty: number;
  /** The part of `maxCalls` reserved for users with few calls. */
  readonly spareCalls: number;
  /** Unproven calls in progress or still arriving. */
  readonly unprovenCalls: number;
  /** Unproven calls of one network. */
  readonly unprovenCallsPerNetwork: number;
  /** Receive window of a stream while few are open. */
  readonly streamWindowBytes: number;
  /** Sum of the receive windows of all open request streams: windows shrink as streams grow in number. */
  readonly streamWindowsTotalBytes: number;
  /** Sum of all requests above 64 KiB in collection; further ones wait, users in turn. */
  readonly heldRequestBytes: number;
  /** Sum of all replies above 64 KiB that wait to be sent. */
  readonly heldReplyBytes: number;
  /** Large replies in bytes that may wait per connection; above half of it, new calls are refused at once. */
  readonly heldPerConnectionBytes: number;
  /**
   * Slowest rate at which a connection must bring bytes while a call of it waits for the rest of a message, measured
   * over `progressWindowMs`.
   */
  readonly minimumBytesPerSecond: number;
  readonly progressWindowMs: number;
  /**
   * Time in which a unary request must arrive, and the longest silence inside a message of a stream; waiting for
   * room does not count.
   */
  readonly requestMs: number;
  /** The same for unproven callers. */
  readonly unprovenRequestMs: number;
  /** A reply is given up when the client takes nothing of it for this long. */
  readonly sendStallMs: number;
  /** Time limit of the TLS handshake and the first HTTP/2 settings. */
  readonly handshakeMs: number;
  /** A connection is pinged when nothing arrived for this long. */
  readonly keepaliveMs: number;
  /** And closed when the ping is not answered in this time, counted from the last sign that bytes move. */
  readonly keepaliveTimeoutMs: number;
}

/** Limits of a channel. */
export interface ChannelLimits extends MessageLimits {
  readonly maxHeaderListBytes: number;
  readonly streamWindowBytes: number;
  readonly connectMs: number;
  /** Sum of all ordinary messages above 64 KiB that are in collection or wait to be sent. */
  readonly heldMessageBytes: number;
  /** Calls that wait for a connection; one more fails with UNAVAILABLE. */
  readonly maxWaitingCalls: number;
}

/**
 * Pings of a channel: the silence before one, and the time for its answer from the last sign that bytes move. Without
 * this it sends none.
 */
export interface ChannelKeepalive {
  readonly intervalMs: number;
  readonly timeoutMs: number;
}

/** Waiting times between attempts to connect. */
export interface Backoff {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly multiplier: number;
  /** The random part of each wait: 0.2 means ±20 %. */
  readonly jitter: number;
}

const MESSAGE_LIMITS: MessageLimits = {
  receiveMessageBytes: 8 * MIB,
  receiveFields: 8 * MIB,
  sendMessageBytes: 8 * MIB,
  maxDecompressedBytes: 8 * MIB,
};

/** Default limits of a server. */
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

/** Default limits of a channel. */
export const DEFAULT_CHANNEL_LIMITS: ChannelLimits = {
  ...MESSAGE_LIMITS,
  maxHeaderListBytes: 65_536,
  // A client has few streams and may be far away, or run late on a busy machine.
  streamWindowBytes: 4 * MIB,
  connectMs: 10_000,
  heldMessageBytes: 128 * MIB,
  maxWaitingCalls: 10_000,
};

/** Default waiting times of a channel. */
export const DEFAULT_BACKOFF: Backoff = { initialMs: 200, maxMs: 30_000, multiplier: 1.6, jitter: 0.2 };

/** Most bytes of one stream that are handed to HTTP/2 at a time: a client that never reads holds no more. */
export const SEND_WINDOW_BYTES: number = 256 * 1_024;
/** Most bytes of one stream that wait for a consumer before the stream is paused. */
export const RECEIVE_QUEUE_BYTES: number = 256 * 1_024;
/** Limits of a request that unproven callers may send. */
export const SMALL_REQUEST: ReceiveLimits = { receiveMessageBytes: 4 * 1_024, receiveFields: 64 };
/** Messages up to this size do not count as held. */
export const SMALL_MESSAGE_BYTES: number = 64 * 1_024;
/** Receive window of a whole connection; streams have windows of their own. */
export const SESSION_WINDOW_BYTES: number = 64 * MIB;
/** MiB that node:http2 lets a session hold; its default of 10 refuses streams while large writes wait. */
export const SESSION_MEMORY_MIB = 64;
/** Smallest window of a stream, at any number of streams. */
export const STREAM_WINDOW_MIN_BYTES = 65_535;
/** Calm after which the windows of streams grow again. */
export const WINDOWS_CALM_MS = 30_000;
/** Time for a client's answer to SETTINGS, behind all that it has sent: until then a narrower window is only told. */
export const SETTINGS_ANSWER_MS = 120_000;
/** Largest accepted frame. Peers other than node:http2 use it. */
export const FRAME_BYTES: number = 64 * 1_024;
/** The stream of an ended call that the peer leaves open is reset after this time. */
export const LINGER_MS = 5_000;
/** Interval of checks on progress, keepalive and lingering streams. */
export const SWEEP_MS = 1_000;
/** Automatic retries of a call that no server has looked at. */
export const TRANSPARENT_RETRIES = 3;
/**
 * Large messages decompressed at a time per server or channel; the calls in progress bound the waiting ones.
 */
export const UNFOLDED_AT_ONCE = 2;
/** Large replies per connection in the making or unread: enough for a disk, too few to fill the memory. */
export const BULKY_CALLS_AT_ONCE = 4;
/** Replies up to this size do not count as large ones once they are made. */
export const BULKY_REPLY_MIN_BYTES: number = 16 * 1_024;
/**
 * Calls that a connection may begin in one turn of the event loop: some milliseconds of work. Further ones
 * wait, and the connection is not read meanwhile.
 */
export const CONNECTION_CALLS_PER_TURN = 32;
/** The same for all connections together. */
export const CALLS_PER_TURN = 64;
/** The same for all where several connections begin calls. */
export const SHARED_CALLS_PER_TURN = 24;
/** Cost of beginning a call with megabytes in either direction, since it makes room at once. */
export const BULKY_CALL_COST = 8;
/** Names and values of headers above which a call counts as several. */
export const COSTLY_HEADERS = 32;
/** Bytes outside calls that a connection may send at once; honest clients send a small part of it. */
export const FLOOD_BURST_BYTES: number = 256 * 1_024;
/** And those that it may send every second. */
export const FLOOD_BYTES_PER_SECOND: number = MIB;
/** Bytes of a frame on the wire besides its content: header, padding, and TLS. */
export const FRAME_COST_BYTES = 300;
/** Bytes that may still arrive for calls that take no more, per connection. */
export const LATE_BYTES: number = 8 * MIB;
/**
 * Received bytes that allow a client one byte of window updates: 26 bytes per frame of 16 KiB, times four.
 */
export const WRITTEN_PER_UPDATE_BYTE = 128;
/** Interval of the flood watch for young connections and after each flood; otherwise a second. */
export const FLOOD_WATCH_MS = 5;
/** The first second of a connection. */
export const YOUNG_CONNECTION_MS = 1_000;
/** The time after a flood. */
export const AFTER_FLOOD_MS = 60_000;
/** Streams that a client may open per concurrent call: the others replace those that it has just given up. */
export const STREAMS_PER_PLACE = 2;
/** Streams that a client may give up at once; one more ends its connection. Three times those it may open. */
export const RESETS_AT_ONCE = 600;
/**
 * Further streams that a client may give up per second: one that races two servers is no attacker. Since
 * nghttp2 counts whole seconds and saves up no more than `RESETS_AT_ONCE`, this must not be more.
 */
export const RESETS_PER_SECOND = 500;
/** Closed sessions, 50 KB each, that wait for a full collection before one is requested at once. */
export const CLOSED_SESSIONS_KEPT = 2_000;
/** The same once COLLECTED_AT_MOST_EVERY_MS have passed; a collection blocks everything for some 50 ms. */
export const CLOSED_SESSIONS_MANY = 500;
/** Shortest time between two requested collections. */
export const COLLECTED_AT_MOST_EVERY_MS = 5_000;
/** Users' calls whose requests are still arriving. */
export const ARRIVING_CALLS = 4_000;
/** Nodes' calls in progress, and as many arriving, in places of their own. */
export const NODE_CALLS = 1_000;
/** Calls of one node. */
export const CALLS_OF_NODE = 64;
/** A party with at most this many calls may use the spare places. */
export const MODEST_CALLS = 64;
/** Largest part of held request or reply bytes per user, and the part spared for users below an eighth. */
export const BYTES_OF_PARTY: number = 1 / 2;
export const SPARE_BYTES: number = 1 / 4;
export const MODEST_BYTES: number = 1 / 8;
/** Connections of nodes besides `maxConnections`. */
export const NODE_CONNECTIONS = 200;
/** Connections of one user; further ones count as unproven. */
export const CONNECTIONS_OF_USER = 64;
/** Calls of all unproven connections together that may begin in a turn of the event loop. */
export const UNPROVEN_CALLS_PER_TURN = 16;
/**
 * Bytes read of all connections in one turn of the event loop where several send: some milliseconds of work.
 */
export const READ_BYTES_PER_TURN: number = 512 * 1_024;
/** Least bytes read of each connection. */
export const READ_BYTES_PER_TURN_MIN: number = 64 * 1_024;
/** Refused calls without a proof in between after which a connection gets GOAWAY. */
export const REFUSALS_PER_CONNECTION = 20;
/** Handshakes of one network (an IPv4 address, the /64 of an IPv6 one): at once, and every second. */
export const HANDSHAKES_OF_NETWORK: BucketRate = { burst: 256, perSecond: 20 };
/** Handshakes of a site (/24, /48). */
export const HANDSHAKES_OF_SITE: BucketRate = { burst: 1_024, perSecond: 80 };
/** Handshakes of all clients. */
export const HANDSHAKES_OF_ALL: BucketRate = { burst: 2_000, perSecond: 200 };
/** Cost of a connection without TLS, in handshakes. */
export const PLAIN_HANDSHAKE_COST = 0.1;
/** Cost of a handshake from a network with a proven caller in the last hour. */
export const PROVEN_HANDSHAKE_COST = 0.25;
/** The hour in which a proof counts for its network. */
export const PROVEN_NETWORK_MS = 3_600_000;
/** Networks remembered as proven. */
export const PROVEN_NETWORKS_KEPT = 10_000;
/** Wasted work in bytes that unproven callers of one network may cause: at once, and every second. */
export const UNPROVEN_LOAD_OF_NETWORK: BucketRate = { burst: 8 * MIB, perSecond: 512 * 1_024 };
/** The same for all of them together. */
export const UNPROVEN_LOAD_OF_ALL: BucketRate = { burst: 64 * MIB, perSecond: 4 * MIB };
/** A connection with less wasted work stays open although its network is over budget: others may share it. */
export const UNPROVEN_LOAD_OF_CONNECTION: number = 32 * 1_024;
/** Cost of a refusal, or of a call given up, besides its headers. */
export const REFUSAL_LOAD_BYTES = 2_048;
