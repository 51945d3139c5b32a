// Limits of Grove that two or more rooms share, and the specification's section 8; units end their names.

/** Quota of a user without an entry (spec 2.1, 8): 16 GiB. Every fallback of spec 5.9 is this constant. */
export const DEFAULT_QUOTA_BYTES: bigint = 17_179_869_184n;
/**
 * Files and directories of a root without an entry for its user, trash included: empty ones cost a row each.
 */
export const DEFAULT_INODE_LIMIT = 10_000_000;
/** Physical free space that no write may consume (spec 4.6.3, 8): 20 GiB. */
export const DISK_RESERVE_BYTES: bigint = 21_474_836_480n;
/** Payload of one transfer message and of one chunk file (spec 8, decision T7): 4 MB. */
export const CHUNK_BYTES = 4_000_000;
/** Sliding idle time of a Server Session Token (spec 2.3, 8). */
export const SESSION_IDLE_TIMEOUT_MS: number = 15 * 60_000;
/** Absolute life of a Server Session Token (spec 2.3, 8). */
export const SESSION_LIFETIME_MS: number = 12 * 3_600_000;
/** Sessions of one user; one more evicts the oldest (spec 3.4, 8). */
export const SESSIONS_PER_USER = 5;
/** Sessions of all users on a FileServer (spec 8). */
export const SESSIONS_GLOBAL = 10_000;
/** How often expired sessions are removed (spec 3.4, 8). */
export const SESSION_SWEEP_INTERVAL_MS = 60_000;
/** Life of an operator's session in the console (spec 2.4, 8). */
export const ADMIN_SESSION_LIFETIME_MS: number = 12 * 3_600_000;
/** Longest time for which a verified ID token is cached (spec 5.2, 8). */
export const TOKEN_CACHE_CAP_MS: number = 2 * 3_600_000;
/** Mock tokens in the token cache (spec 5.2, 8); the same cap bounds the cache of real ones. */
export const TOKEN_CACHE_ENTRIES = 5_000;
/** Interval of metrics scrape, alert evaluation and status grading (spec 8). */
export const POLL_INTERVAL_MS = 5_000;
/** A node is offline when /metrics has not answered for longer than this (spec 3.2, 8). */
export const NODE_OFFLINE_AFTER_MS = 30_000;
/** Snapshots kept per node: 60 minutes at 5 s (spec 8). */
export const HISTORY_SNAPSHOTS_PER_NODE = 720;
/** How often the history is written to disk (spec 8). */
export const SNAPSHOT_SAVE_INTERVAL_MS = 60_000;
/** How often node addresses are read again from the metadata store (spec 4.4, 8). */
export const ADDRESS_REREAD_INTERVAL_MS = 10_000;
/** Fewest log lines per request (spec 4.1, 8). */
export const LOG_LINES_MIN = 10;
/** Most log lines per request (spec 4.1, 8). */
export const LOG_LINES_MAX = 1_000;
/** Records of finished commands kept by default (spec 8). */
export const COMMAND_HISTORY_RECORDS = 100;
/**
 * Alert thresholds in percent and degrees Celsius, crossed when exceeded; quotas when reached (spec 3.1, 8).
 */
export const ALERT_THRESHOLDS = {
  storagePercent: { warning: 80, critical: 95 },
  temperatureCelsius: { warning: 65, critical: 85 },
  errorRatePercent: { warning: 5, critical: 20 },
  quotaPercent: { critical: 100 },
} as const;
/** Share of a quota in percent above which there is a warning (T1, spec 3.1 rule 3). */
export const QUOTA_ALERT_WARNING_PERCENT = 95;
/** Attempts within 60 s below which there is no error rate (T4). */
export const ERROR_RATE_MIN_OPERATIONS = 20;
/** Alerts per answer (D11). */
export const ALERTS_PAGE_MAX = 1_000;
/** Node status thresholds in percent and degrees Celsius, crossed when exceeded (spec 3.2, 8). */
export const NODE_STATUS_THRESHOLDS = {
  warning: { diskPercent: 80, temperatureCelsius: 65 },
  degraded: { diskPercent: 90, temperatureCelsius: 75 },
  critical: { diskPercent: 95, temperatureCelsius: 85 },
} as const;

/** Default gRPC port of a FileServer (decision T6). */
export const FILESERVER_PORT = 50_051;
/** Default gRPC port of the MetaServer (decision D23). */
export const METASERVER_PORT = 50_050;
/** Default HTTP port of the console (decision D23). */
export const CONSOLE_PORT = 8_080;
/** Default HTTP port of a door. */
export const DOOR_PORT = 8_070;
/** Default port of a door's metrics, on this machine alone. */
export const DOOR_METRICS_PORT = 9_070;

/** Largest payload of one upload message (decision T7): 4 MiB. */
export const UPLOAD_MESSAGE_MAX_BYTES = 4_194_304;
/** Largest gRPC message that servers and clients receive (decision T7): 8 MiB. */
export const RECEIVE_MESSAGE_MAX_BYTES: number = 8 * 1_048_576;
/** Bytes verified and sent at a time; one CRC-32 is stored per block (decision D15). */
export const BLOCK_BYTES = 262_144;
/** Content up to this size lives inside the database (design, "FileServer storage"). */
export const INLINE_FILE_MAX_BYTES = 65_536;
/** Largest size of one file: 8 TiB. Offsets stay exact in JavaScript numbers. */
export const FILE_MAX_BYTES: number = 2 ** 43;
/** Largest unsigned 64-bit integer; byte counts on the wire end here (decision T17). */
export const U64_MAX: bigint = 18_446_744_073_709_551_615n;

/** Bytes of one name in UTF-8 (decision D13). */
export const NAME_MAX_BYTES = 255;
/** Bytes of one path in UTF-8 (decision D13). */
export const PATH_MAX_BYTES = 4_096;
/** The last moment that a date can be, in milliseconds (ECMA-262); the first is as far before 1970. */
export const LAST_MOMENT_MS = 8_640_000_000_000_000;
/** Elements in one another in XML that WebDAV programs send or keep. */
export const XML_MAX_DEPTH = 32;
/** Elements of such XML: more take longer to read than others should wait. */
export const XML_MAX_ELEMENTS = 2_000;
/** Characters of a namespace's name in it: XML that stands by itself repeats the name where it is used. */
export const XML_NAMESPACE_MAX_LENGTH = 1_024;
/** Entries of one ListDir page (decision D13). */
export const LIST_PAGE_MAX = 1_000;
/** Characters of a username, that is of an e-mail address (RFC 5321). */
export const USERNAME_MAX_LENGTH = 254;
/** Characters of client_id, client_version and device_name in RegisterClient (decision D23). */
export const CLIENT_LABEL_MAX_LENGTH = 128;

/** Wrong x-admin-password-hash values per address and window (decision D17). */
export const ADMIN_HASH_FAILURES_PER_WINDOW = 5;
/** The window of the limit above (decision D17). */
export const ADMIN_HASH_FAILURE_WINDOW_MS: number = 15 * 60_000;
/** Security events that a FileServer keeps (decision D22). */
export const SECURITY_EVENTS_KEPT = 100;
/** Shortest time between two IP mismatch events of a session (decision T22). */
export const IP_MISMATCH_EVENT_INTERVAL_MS: number = 10 * 60_000;

/** Interval of a FileServer's heartbeats to the MetaServer (decision D19). */
export const HEARTBEAT_INTERVAL_MS = 5_000;
/** A node's lease ends when no heartbeat came for this long (decision D19). */
export const NODE_LEASE_MS = 30_000;
/** How long a client may keep a route (decision T20). */
export const ROUTE_TTL_SECONDS: number = 12 * 3_600;
/** Time limit of one call to the identity provider (decision D21). */
export const IDP_TIMEOUT_MS = 5_000;
/** Leniency for the clocks of identity providers in `exp`, `iat` and `nbf` (decision D21). */
export const TOKEN_CLOCK_LENIENCY_MS = 60_000;
/** Characters of the subject of an ID token. */
export const SUBJECT_MAX_LENGTH = 255;
/** Characters of the issuer of an ID token. */
export const ISSUER_MAX_LENGTH = 1_024;
/** Subjects that the metadata store lists at once. */
export const SUBJECTS_LISTED_MAX = 1_000;
/** Users with a stored state: locked out now or earlier. */
export const USER_STATES_MAX = 10_000;
/** Characters of the reason for such a state. */
export const USER_STATE_REASON_MAX_LENGTH = 200;
/** How long the files of a removed user are kept, by the administrator's clock. */
export const REMOVAL_GRACE_MS = 30 * 24 * 60 * 60_000;
/** Concurrent hand-overs of one root. */
export const HAND_OVERS_PER_USER = 4;
/** User states per message. */
export const USER_STATES_PER_MESSAGE = 500;
/** How long a graceful stop may take before the process ends itself. */
export const STOP_GRACE_MS = 20_000;
/** Entries of one page of an action's output. */
export const ACTION_OUTPUT_PAGE_ENTRIES = 1_000;
/** Retries of a check and its change when shares or moves overtake them. */
export const STALE_ACCESS_RETRIES = 8;
/** Addresses with counted RegisterClient calls; the one unseen for longest is dropped first. */
export const RATE_LIMIT_ADDRESSES = 20_000;
/** Nodes of one cluster; a registration beyond them is answered OVERLOADED. */
export const NODES_MAX = 1_000;
/** Entries per answer about roots shared with a user. */
export const SHARED_ROOTS_LISTED_MAX = 1_000;
/** Handed-over roots on the first page of a user's list. */
export const INHERITED_ROOTS_LISTED_MAX = 100;
/** Entries of one page of all roots. */
export const ROOTS_LISTED_MAX = 1_000;
/** Characters of a node's own labels: name, version, instance and data id. */
export const NODE_LABEL_MAX_LENGTH = 128;
/** A resumable upload that has not moved for this long is dropped (decision D15). */
export const UPLOAD_IDLE_MS: number = 24 * 60 * 60_000;
/** Trash items that one transaction removes, so that other commands wait little. */
export const TRASH_PURGE_BATCH = 64;
/** Characters of an administrator's reason to see a user's trash. */
export const OPERATOR_REASON_MAX_LENGTH = 200;
/** Lines per answer about the audit log. */
export const AUDIT_PAGE_LINES = 1_000;
/** Inodes and content lists that one root may ever make; their numbers are never reused. */
export const IDS_PER_ROOT: number = 2 ** 32 - 1;

/** The highest number of a root: with IDS_PER_ROOT below it, inode numbers stay below 2^53. */
export const ROOT_NUMBER_MAX: number = 2 ** 21 - 1;

/** Root numbers from here on are given out by the MetaServer, once each; a data folder counts those below. */
export const CLUSTER_ROOT_NUMBERS_FROM: number = 2 ** 20;
/** Epochs of the shared engine that a root has between two moves; times the highest number, they reach 2^52. */
const EPOCHS_BETWEEN_MOVES = 2 ** 31;

/**
 * The highest epoch that a root can have had before a move. Each move has a number of the cluster's, higher than
 * those of moves before, so that a list that was sent before a root moved never outdoes its lease after it.
 */
export function lastEpochBefore(moveNumber: number): number {
  return moveNumber * EPOCHS_BETWEEN_MOVES;
}
/** Differences that a check of a data directory lists; further ones are counted. */
export const CHECK_DIFFERENCES_LISTED = 1_000;
/** Users that the per-user maps of /metrics list; sums cover all users. A multiple of 64. */
export const METRICS_USERS_LISTED_MAX = 51_200;
/** Characters of a matcher's value. */
export const SILENCE_VALUE_MAX_LENGTH = 256;
/** Nodes of one action (decision D17). */
export const ACTION_NODES_MAX = 50;
/** Default time limit of a custom command in seconds (decision D7). */
export const CUSTOM_LIMIT_SECONDS = 60;
/** Largest time limit of a custom command in seconds (decision D7). */
export const CUSTOM_LIMIT_MAX_SECONDS = 3_600;
/** Default number of log lines that an action fetches (decision D10). */
export const LOG_LINES_DEFAULT = 200;
/** Default seconds that a restarted node has for /health and a good poll. */
export const ROLLOUT_HEALTH_SECONDS = 60;
/** Default seconds of observation after that: six polls. */
export const ROLLOUT_OBSERVE_SECONDS = 30;
/** Largest value of either for a rollout, in seconds: ten minutes. */
export const ROLLOUT_WAIT_MAX_SECONDS = 600;
/** Default increase of failed operations a second that stops a rollout: three in its 30 s. */
export const ROLLOUT_ERRORS_PER_SECOND_ABOVE = 0.1;
/** Users in direct shares and exclusions of one inode; larger groups share a folder above (spec 4.5). */
export const GRANTS_PER_INODE = 256;
/**
 * Shares and exclusions of one root, which a move may rename and a node reports to the MetaServer at once.
 */
export const GRANTS_PER_ROOT = 2_048;
/** Days before a certificate's end at which servers begin to warn (failure B-11). */
export const CERTIFICATE_WARNING_DAYS = 14;
/** Longest life of a join token: a week. */
export const JOIN_TOKEN_LIFETIME_MAX_MS: number = 7 * 86_400_000;
/** Rows of 15 minutes kept per node: 400 days, 3 MB. */
export const QUARTER_ROWS_KEPT: number = 400 * 24 * 4;
/** Default port of SSH. */
export const SSH_PORT = 22;
