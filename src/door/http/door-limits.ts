// How much of a door one network and one user can take; docs/budgets.md has the table.

/** TCP connections. */
export const DOOR_CONNECTIONS = 1_024;
/** Connections of one network; named proxies carry many clients and are exempt. */
export const DOOR_CONNECTIONS_PER_NETWORK = 320;
/** Connections of one network on which nobody has signed in. */
export const DOOR_UNPROVEN_PER_NETWORK = 256;
/** Requests of people who have signed in that are answered at once. */
export const DOOR_REQUESTS = 256;
/** Requests of one user among these. */
export const DOOR_REQUESTS_PER_USER = 48;
/** Requests that wait for such a place, their bodies unread. */
export const DOOR_WAITING = 1_024;
/** Waiting requests of one user. */
export const DOOR_WAITING_PER_USER = 256;
/** Listings (PROPFIND) of one user at once; more wait in turn. */
export const DOOR_LISTINGS_PER_USER = 2;
/** Credentials that are being checked. */
export const DOOR_CHECKS = 64;
/** Credentials of one network that are being checked. */
export const DOOR_CHECKS_PER_NETWORK = 16;
/** Wrong credentials of one network in the window below; then only those that were right before count. */
export const DOOR_FAILURES_PER_NETWORK = 30;
/** The window of the limit above. */
export const DOOR_FAILURE_WINDOW_MS: number = 5 * 60_000;
/** Credentials that were right lately, as hashes, so that a shut network's own users still come in. */
export const DOOR_KNOWN_CREDENTIALS = 4_096;
/** Wrong credentials on one connection, without right ones in between, after which it ends; named proxies are exempt. */
export const DOOR_REFUSALS_PER_CONNECTION = 20;
/** Requests of one HTTP/1.1 connection in a turn of the event loop, after which others are read. */
export const DOOR_REQUESTS_PER_TURN = 4;
/** Requests of one without an answer, from which on it is read no further: they are answered one after the other. */
export const DOOR_REQUESTS_UNANSWERED = 64;
/** Requests of one in a turn that end it where nobody has signed in on it. */
export const DOOR_UNPROVEN_REQUESTS_PER_TURN = 32;
/** Bytes of all headers of a request: an address of 12 KiB twice, and an If of 8 KiB. */
export const DOOR_HEADERS_MAX_BYTES = 40_960;
/** Headers of a request. */
export const DOOR_HEADERS_MAX = 100;
/** Time in which a request's headers must arrive. */
export const DOOR_HEADERS_MS = 10_000;
/** Time in which a TLS handshake must end. */
export const DOOR_HANDSHAKE_MS = 10_000;
/** How long an idle connection is kept: longer than proxies keep theirs. */
export const DOOR_IDLE_MS = 65_000;
/**
 * How long connections without a request stay open at a stop: a request that is on its way gets its answer, which ends
 * its connection.
 */
export const DOOR_STOP_LINGER_MS = 500;
/** Time that a client has for DOOR_PACE_BYTES of a body, and for each part of an answer, while the door waits for it. */
export const DOOR_PACE_MS = 30_000;
/** Bytes of a body that must come in that time. An answer's part counts once its last byte has left. */
export const DOOR_PACE_BYTES = 16_384;
/** Streams of one HTTP/2 connection. */
export const DOOR_STREAMS_PER_CONNECTION = 100;
/** Streams of one HTTP/2 connection that its client may reset at once: pictures that a browser scrolls past. */
export const DOOR_RESETS_AT_ONCE = 200;
/** Resets a second after those; one more ends the connection. nghttp2 counts whole seconds. */
export const DOOR_RESETS_PER_SECOND = 100;
/** Bytes of a refused body that are read and dropped, so that its sender sees the answer. */
export const DOOR_LINGER_BYTES = 4_194_304;
/** Time for that. */
export const DOOR_LINGER_MS = 2_000;
/** Bytes of an HTTP/2 connection that may be on their way once somebody has signed in on it; 65,535 before. */
export const DOOR_WINDOW_BYTES = 1_048_576;
