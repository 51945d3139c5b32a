// Every number that bounds Grove: the specification's section 8 first, then our own, each with its unit in its name.

/** Quota of a user without an entry (spec 2.1, 8): 16 GiB. Every fallback of spec 5.9 is this constant. */
export const DEFAULT_QUOTA_BYTES: bigint = 17_179_869_184n;
/** Files and directories that a root may hold, its trash included, for a user without an entry: empty ones cost no bytes, but a row each. */
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
/** Wrong passwords from one address within LOGIN_FAILURE_WINDOW_MS; more are refused without a look (D17). */
export const LOGIN_FAILURES_PER_WINDOW = 5;
/** See LOGIN_FAILURES_PER_WINDOW. */
export const LOGIN_FAILURE_WINDOW_MS: number = 15 * 60_000;
/** Wrong passwords from all addresses within LOGIN_TOTAL_WINDOW_MS; from then on who has failed within it is refused (D17). */
export const LOGIN_FAILURES_TOTAL = 100;
/** See LOGIN_FAILURES_TOTAL. */
export const LOGIN_TOTAL_WINDOW_MS = 3_600_000;
/** How long the answer to a wrong password is held back (D17). */
export const LOGIN_FAILURE_DELAY_MS = 1_000;
/** Life of a ticket for one WebSocket (decision D8). */
export const WS_TICKET_LIFETIME_MS = 30_000;
/** Tickets that wait to be used; one more ends the oldest. */
export const WS_TICKETS_MAX = 1_000;
/** Longest time for which a verified ID token is cached (spec 5.2, 8). */
export const TOKEN_CACHE_CAP_MS: number = 2 * 3_600_000;
/** Mock tokens in the token cache (spec 5.2, 8); the same cap bounds the cache of real ones. */
export const TOKEN_CACHE_ENTRIES = 5_000;
/** Metrics scrape, alert evaluation, status grading (spec 8). */
export const POLL_INTERVAL_MS = 5_000;
/** A node is offline when /metrics has not answered for longer than this (spec 3.2, 8). */
export const NODE_OFFLINE_AFTER_MS = 30_000;
/** Snapshots kept per node: 60 minutes at 5 s (spec 8). */
export const HISTORY_SNAPSHOTS_PER_NODE = 720;
/** How often the history is written to disk (spec 8). */
export const SNAPSHOT_SAVE_INTERVAL_MS = 60_000;
/** How often node addresses are read again from the metadata store (spec 4.4, 8). */
export const ADDRESS_REREAD_INTERVAL_MS = 10_000;
/** Log lines that may be asked for (spec 4.1, 8). */
export const LOG_LINES_MIN = 10;
/** Log lines that may be asked for (spec 4.1, 8). */
export const LOG_LINES_MAX = 1_000;
/** Records of finished commands kept by default (spec 8). */
export const COMMAND_HISTORY_RECORDS = 100;
/** Alert thresholds in percent and degrees Celsius, crossed when exceeded; the quota's when reached (spec 3.1, 8). */
export const ALERT_THRESHOLDS = {
  storagePercent: { warning: 80, critical: 95 },
  temperatureCelsius: { warning: 65, critical: 85 },
  errorRatePercent: { warning: 5, critical: 20 },
  quotaPercent: { critical: 100 },
} as const;
/**
 * What is left above a disk's reserve when there is an alert: bytes, but no more than a share of all that the disk has above it; and days
 * at the present pace. Crossed when there is less.
 */
export const RESERVE_ALERT = {
  bytes: { warning: 10_737_418_240, critical: 1_073_741_824 },
  sharePercent: { warning: 10, critical: 1 },
  days: { warning: 7, critical: 1 },
} as const;
/** What is left must be so many times the limit before such an alert is over: what hovers there would come and go with every poll. */
export const RESERVE_ALERT_SLACK = 1.25;
/** Share of a filesystem's inodes in percent that is free when there is an alert; crossed when there are fewer. */
export const INODES_FREE_ALERT_PERCENT = { warning: 10, critical: 3 } as const;
/** Share of a quota in percent above which there is a warning (T1, spec 3.1 rule 3). */
export const QUOTA_ALERT_WARNING_PERCENT = 95;
/** Attempts within 60 s below which there is no error rate (T4). */
export const ERROR_RATE_MIN_OPERATIONS = 20;
/** Resolved alerts that are kept of those that visitors may see, and as many of the others: what one sees must not tell of the other (D11). */
export const ALERTS_RESOLVED_KEPT = 1_000;
/** How long a resolved alert is kept at most (D11): 30 days. */
export const ALERT_KEPT_MS: number = 30 * 86_400_000;
/** Alerts of one answer (D11). */
export const ALERTS_PAGE_MAX = 1_000;
/** How old the list of users' homes may be by which alerts are judged: it is read again at every round that has somebody near a quota. */
export const HOMES_OF_ALERTS_AGE_MS = 60_000;
/** Writes of the file of alerts at once; beyond them there is one in so many milliseconds: alerts that flap must not wear a card out. */
export const ALERT_WRITES_AT_ONCE = 10;
/** See above. */
export const ALERT_WRITE_INTERVAL_MS = 1_000;
/** Open alerts about single users that one node may cause; a node that lies about thousands must not hide the others'. */
export const USER_ALERTS_PER_NODE_MAX = 1_000;
/** Open alerts about single users of all nodes, so that the file of alerts stays small. */
export const USER_ALERTS_MAX = 10_000;
/** An action or a maintenance that ended less than this ago explains a restart (D24). */
export const RESTART_EXPLAINED_MS: number = 5 * 60_000;
/** A node that has stayed up for so long since a restart is over it (D11). */
export const RESTART_OVER_MS: number = 10 * 60_000;
/** Difference of clocks above which a node gets an alert (D24). */
export const CLOCK_SKEW_ALERT_MS = 60_000;
/** Days before a certificate's end from which its alert is critical. */
export const CERTIFICATE_CRITICAL_DAYS = 2;
/** Failed sign-ins to the console within the window below from which there is an alert (W-03). */
export const LOGIN_FAILURES_ALERT = 10;
/** The window in which failed sign-ins are counted together. */
export const LOGIN_FAILURES_WINDOW_MS: number = 15 * 60_000;
/** An alert about an attempt, such as a session from another address, ends when none followed for so long. */
export const ATTEMPT_OVER_MS: number = 24 * 3_600_000;
/** Alerts of a node that nobody knows any more end after so long. */
export const NODE_FORGOTTEN_MS: number = 3_600_000;
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
/** Default HTTP port of the demonstration's identity provider (decision D23). */
export const DEMO_IDP_PORT = 8_090;
/** Loopback port that waits for the identity provider's redirect (spec 5.1). */
export const LOGIN_CALLBACK_PORT = 38_485;

/** Largest payload that one upload message may carry (decision T7): 4 MiB. */
export const UPLOAD_MESSAGE_MAX_BYTES = 4_194_304;
/** Largest gRPC message that our servers and clients receive (decision T7): 8 MiB. */
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
/** Entries of one ListDir page (decision D13). */
export const LIST_PAGE_MAX = 1_000;
/** Characters of a username, that is of an e-mail address (RFC 5321). */
export const USERNAME_MAX_LENGTH = 254;
/** Characters of client_id, client_version and device_name in RegisterClient (decision D23). */
export const CLIENT_LABEL_MAX_LENGTH = 128;

/** Concurrent uploads of one user, and as many downloads (decision D17). */
export const STREAMS_PER_USER = 256;
/** Concurrent HTTP/2 streams of one connection (decision D17). */
export const STREAMS_PER_CONNECTION = 100;
/** Sign-ins of one user per minute, and refused ones of one address (decision D17): many users behind one address are no flood. */
export const REGISTER_PER_MINUTE = 60;
/** Wrong x-admin-password-hash values per address and window (decision D17). */
export const ADMIN_HASH_FAILURES_PER_WINDOW = 5;
/** The window of the limit above (decision D17). */
export const ADMIN_HASH_FAILURE_WINDOW_MS: number = 15 * 60_000;
/** Security events that a FileServer keeps (decision D22). */
export const SECURITY_EVENTS_KEPT = 100;
/** Pause between two writes of a MetaServer's security events to the metadata store. */
export const SECURITY_TELL_INTERVAL_MS = 2_000;
/** MetaServers whose security events the metadata store keeps. */
export const METASERVERS_HEARD_MAX = 64;
/** Bytes of one MetaServer's security events in the store: 100 of them. */
export const SECURITY_REPORT_MAX_BYTES = 65_536;
/** At most one IP mismatch event per session in this time (decision T22). */
export const IP_MISMATCH_EVENT_INTERVAL_MS: number = 10 * 60_000;

/** How often a FileServer tells the MetaServer that it lives (decision D19). */
export const HEARTBEAT_INTERVAL_MS = 5_000;
/** A node's lease ends when no heartbeat came for this long (decision D19). */
export const NODE_LEASE_MS = 30_000;
/** How often a MetaServer with a store of its own counts the time that it was there to hear heartbeats. */
export const LEASE_LOOK_INTERVAL_MS = 1_000;
/** How long a client may keep a route (decision T20). */
export const ROUTE_TTL_SECONDS: number = 12 * 3_600;
/** Time limit of one call to the identity provider (decision D21). */
export const IDP_TIMEOUT_MS = 5_000;
/** How long a refused ID token is remembered (decision D21). */
export const TOKEN_NEGATIVE_CACHE_MS = 30_000;
/** Largest answer accepted from the identity provider. */
export const IDP_RESPONSE_MAX_BYTES = 65_536;
/** Operations per kind over which latency percentiles are taken (decision D12). */
export const LATENCY_WINDOW_OPERATIONS = 1_024;
/** A user counts as active for this long after the last use of a session (decision D12). */
export const ACTIVE_USER_WINDOW_MS: number = 15 * 60_000;
/** Ended session tokens whose reason (idle, expired, evicted) is still told. */
export const SESSION_TOMBSTONES = 10_000;
/** Users without a session whose last use is still known. */
export const LAST_ACTIVE_USERS_KEPT = 20_000;
/** Leniency for the clocks of identity providers in `exp`, `iat` and `nbf` (decision D21). */
export const TOKEN_CLOCK_LENIENCY_MS = 60_000;
/** Characters of an ID token; longer ones are refused unread. */
export const ID_TOKEN_MAX_LENGTH = 16_384;
/** Verifications of distinct ID tokens under way at once; more wait for their turn. */
export const TOKEN_VERIFICATIONS_IN_FLIGHT = 256;
/** Of these, those of addresses from which nobody has signed in within a day: the rest is left to the others. */
export const TOKEN_VERIFICATIONS_OF_STRANGERS = 192;
/** Of these, those of one address (IPv4, or the /64 of IPv6). */
export const TOKEN_VERIFICATIONS_PER_ADDRESS = 16;
/** Of these, those of one network (IPv4 /24, IPv6 /48). */
export const TOKEN_VERIFICATIONS_PER_NETWORK = 64;
/** Verifications that wait for a place; beyond them the network that has most of them loses its latest, answered OVERLOADED. */
export const TOKEN_VERIFICATIONS_WAITING = 2_048;
/** Those of one address; more are answered RATE_LIMITED. */
export const TOKEN_VERIFICATIONS_WAITING_PER_ADDRESS = 256;
/** Those of one network; more are answered RATE_LIMITED. */
export const TOKEN_VERIFICATIONS_WAITING_PER_NETWORK = 512;
/** How long one waits for a place at most; then it is answered OVERLOADED. */
export const TOKEN_VERIFICATION_WAIT_MS = 10_000;
/** ID tokens of one address that the identity provider may refuse in a minute; more unknown ones are answered RATE_LIMITED. */
export const TOKEN_FAILURES_PER_MINUTE_PER_ADDRESS = 60;
/** The same of one network (IPv4 /24, IPv6 /48). */
export const TOKEN_FAILURES_PER_MINUTE_PER_NETWORK = 240;
/** The same of all together; beyond it only addresses from which somebody has signed in within a day are served. */
export const TOKEN_FAILURES_PER_MINUTE = 6_000;
/** Verifications of one address that may stay without an answer in a minute: an outage is nobody's failure, but it is not asked into without end. */
export const TOKEN_OUTAGES_PER_MINUTE_PER_ADDRESS = 600;
/** How long an address from which somebody has signed in counts as one. */
export const SIGNED_IN_ADDRESS_TTL_MS: number = 24 * 3_600_000;
/** How long discovery answers and key sets of an issuer are used before they are fetched again. */
export const ISSUER_KEYS_TTL_MS: number = 10 * 60_000;
/** Fetches of an issuer's keys that may follow one another at once, because a token names a key that is not among them. */
export const ISSUER_KEY_FETCHES = 2;
/** The same in a minute, from then on. */
export const ISSUER_KEY_FETCHES_PER_MINUTE = 1;
/** Characters of the subject of an ID token. */
export const SUBJECT_MAX_LENGTH = 255;
/** Characters of its issuer. */
export const ISSUER_MAX_LENGTH = 1_024;
/** For how long an operator may be away at the identity provider while signing in. */
export const IDP_SIGN_IN_MS: number = 10 * 60_000;
/** How often the console looks whether an operator who signed in by name is still on the list. */
export const OPERATOR_LIST_CHECK_INTERVAL_MS = 5_000;
/** Operators that a list of subjects may have. */
export const OPERATOR_PEOPLE_MAX = 1_000;
/** Persons behind addresses that the metadata store lists at once. */
export const SUBJECTS_LISTED_MAX = 1_000;
/** Users whose person a MetaServer need not look up again for a while. */
export const ADMITTED_SUBJECTS_KEPT = 20_000;
/** How long it need not. */
export const ADMITTED_SUBJECT_TTL_MS: number = 5 * 60_000;
/** Users about whom a decision of an administrator is kept: who is locked out, and who was. */
export const USER_STATES_MAX = 10_000;
/** Characters of the reason for such a decision. */
export const USER_STATE_REASON_MAX_LENGTH = 200;
/** How long the files of a removed user are kept, by the administrator's clock... */
export const REMOVAL_GRACE_MS = 30 * 24 * 60 * 60_000;
/** ...which a server's may be behind by so much. */
export const REMOVAL_CLOCK_SLACK_MS = 24 * 60 * 60_000;
/** How often a node looks whether a removed user's files are due... */
export const REMOVAL_LOOK_INTERVAL_MS = 60_000;
/** ...from so long after its start on: its clock may be wrong until somebody has told it the time. */
export const REMOVAL_SETTLE_MS = 10 * 60_000;
/** Users to whom one root is handed over at the same time. */
export const HAND_OVERS_PER_USER = 4;
/** For how long at most. */
export const HAND_OVER_MAX_MS = 400 * 24 * 60 * 60_000;
/** How long a node may take for one that the console pushes; all are asked at once. */
export const USER_STATE_PUSH_TIMEOUT_MS = 4_000;
/** Such decisions in one message, each with what it hands over counted too. */
export const USER_STATES_PER_MESSAGE = 500;
/** How often a MetaServer looks whether another one, or an operator, has put a decision into the store. */
export const USER_STATES_LOOK_INTERVAL_MS = 1_000;
/** Users whose issuer and subject are remembered beside the address (decision D21). */
export const SUBJECT_BOOK_ENTRIES = 100_000;
/** Argon2 verifications at once; each takes tens of milliseconds of a core and tens of megabytes. */
export const ARGON2_PARALLEL = 2;
/** Argon2 verifications that may wait; more are answered RATE_LIMITED. */
export const ARGON2_WAITING = 32;
/** Largest Argon2 memory that a configured password hash may ask for: 1 GiB in KiB. */
export const ARGON2_MEMORY_MAX_KIB = 1_048_576;
/** How long a graceful stop may take before the process ends itself. */
export const STOP_GRACE_MS = 20_000;
/** Bytes of log lines that may wait for a slow disk; more are dropped and counted. */
export const LOG_BUFFER_MAX_BYTES = 16_777_216;
/** Characters of a request's id; a longer one is not taken over. */
export const REQUEST_ID_MAX_LENGTH = 64;
/** Characters of one text field in a log line. */
export const LOG_TEXT_MAX_LENGTH = 8_192;
/** WebSockets of the console in all (decision D17). */
export const LIVE_SOCKETS_MAX = 2_000;
/** Those of visitors from one address (decision D17). */
export const LIVE_SOCKETS_PER_ADDRESS = 20;
/** Of all sockets, those that visitors leave to operators, who must get in while a crowd looks on. */
export const LIVE_SOCKETS_FOR_OPERATORS = 100;
/** Largest message that a browser may send over a WebSocket (decision D8): 4 KiB. */
export const LIVE_REQUEST_MAX_BYTES = 4_096;
/** Messages that a browser may send over a WebSocket within the window below; a person's clicks are far fewer. */
export const LIVE_REQUESTS_PER_WINDOW = 30;
/** The window of the limit above. */
export const LIVE_REQUEST_WINDOW_MS = 10_000;
/** Bytes that a WebSocket's client may send in a second, pings and fragments included; more is a flood. */
export const LIVE_RECEIVED_BYTES_PER_SECOND = 65_536;
/** How often a WebSocket is pinged (decision D8). */
export const LIVE_PING_INTERVAL_MS = 20_000;
/** A WebSocket of which nothing was heard for this long is closed (decision D8). */
export const LIVE_SILENCE_MAX_MS = 60_000;
/** How often the session behind a WebSocket is looked up again (failure W-07). */
export const LIVE_SESSION_CHECK_MS = 30_000;
/** How long before the end of a session its sockets are told (decision D8). */
export const LIVE_SESSION_WARNING_MS: number = 5 * 60_000;
/** Bytes that may wait for a slow reader of a WebSocket; beyond, snapshots are dropped, then the socket is closed (decision D8). */
export const LIVE_BUFFER_MAX_BYTES = 1_048_576;
/** Bytes handed to a socket at a time: what waits behind them can still be dropped. */
export const LIVE_HANDED_BYTES = 65_536;
/** Events of a stream that are kept for those who come back. */
export const LIVE_REPLAY_EVENTS = 1_000;
/** The same in bytes; below what may wait for a reader, so that a replay closes nobody. */
export const LIVE_REPLAY_BYTES = 524_288;
/** Topics, such as the output of one action, that one WebSocket follows at once. */
export const LIVE_TOPICS_PER_SOCKET = 16;
/** Time in one turn of the event loop that goes into sending to sockets, before others get theirs. */
export const LIVE_SLICE_MS = 4;
/** Sockets that get something in one turn, whatever the clock says. */
export const LIVE_SLICE_SOCKETS = 128;
/** How often sockets are looked after: silence, sessions, floods. */
export const LIVE_TICK_MS = 1_000;
/** Addresses of the console, each with its query, that are known to have answers which may lie ready; and the characters of one. */
export const KEPT_URLS_MAX = 1_000;
export const KEPT_URL_MAX_LENGTH = 1_024;
/** Users on one page of the list (decision D5). */
export const USERS_PAGE_MAX = 500;
/** Users on one page unless told otherwise. */
export const USERS_PAGE_DEFAULT = 100;
/** Bytes of finished pages of the list of users that are kept until something in it changes. */
export const USERS_PAGES_KEPT_BYTES = 16_777_216;
/** Time in one turn of the event loop that goes into bringing the list of users up to date. */
export const USERS_SLICE_MS = 4;
/** Quotas that were set here and that their nodes' metrics do not show yet. */
export const QUOTAS_AHEAD_MAX = 10_000;
/** Changes of quotas under way or waiting at once; more are answered RATE_LIMITED. */
export const QUOTA_CHANGES_AT_ONCE = 64;
/** Time in which a node must have set a quota, connecting included. */
export const QUOTA_CHANGE_TIMEOUT_MS = 5_000;
/** How long a closed socket may take for its last bytes before it is cut. */
export const LIVE_CLOSE_GRACE_MS = 3_000;
/** Actions that run at the same time; others wait for their turn with their nodes locked. */
export const ACTIONS_ACTIVE_MAX = 5;
/** Actions that wait; more are refused. */
export const ACTIONS_QUEUED_MAX = 20;
/** Nodes on which one action runs at the same time unless it says otherwise. */
export const ACTION_PARALLEL_DEFAULT = 10;
/** Pause between two output events of one action: at most 30 a second (decision D8). */
export const ACTION_EVENT_INTERVAL_MS = 34;
/** Text of one output event (decision D8): 256 KiB. */
export const ACTION_EVENT_MAX_BYTES = 262_144;
/** Output of one action that waits for its event or the disk; beyond it the nodes' programs wait. */
export const ACTION_OUTPUT_PENDING_BYTES = 2_097_152;
/** Output of one action that is kept (decision D7); what comes behind it is counted and dropped. */
export const ACTION_OUTPUT_MAX_BYTES = 268_435_456;
/** The newest output of a running action, kept in memory for those who come back to its socket. */
export const ACTION_OUTPUT_RECENT_BYTES = 524_288;
/** Output of all actions but the newest 20 (decision D7); the oldest go first. */
export const ACTION_OUTPUT_OLD_BYTES = 50_000_000;
/** Entries of one page of output. */
export const ACTION_OUTPUT_PAGE_ENTRIES = 1_000;
/** Bytes of one page of output; the first entry may be larger. */
export const ACTION_OUTPUT_PAGE_BYTES = 1_048_576;
/** Time for the last lines of a log (decision D10). */
export const LOG_TAIL_LIMIT_MS = 10_000;
/** Text of the last lines of a log (decision D10): 1 MiB. */
export const LOG_TAIL_MAX_BYTES = 1_048_576;
/** Characters of one line of a log; the rest of it is left out. */
export const LOG_LINE_MAX_LENGTH = 65_536;
/** Logs whose last lines are read at the same time. */
export const LOG_TAILS_MAX = 10;
/** Logs that are followed at the same time. */
export const LOG_FOLLOWS_MAX = 10;
/** How long a log is followed before it must be asked for again. */
export const LOG_FOLLOW_MAX_MS = 3_600_000;
/** Pause between two messages with lines of one log. */
export const LOG_EVENT_INTERVAL_MS = 100;
/** Log files of the console's own machine that -local_log may name. */
export const LOCAL_LOG_FILES_MAX = 300;
/** Pause between two looks at such a file that is followed. */
export const LOCAL_LOG_POLL_MS = 500;
/** Lines of a followed log that wait for their message; beyond them the oldest are dropped and counted. */
export const LOG_PENDING_LINES = 1_000;
/** How often a node is asked for its health before the next one has its turn. */
export const HEALTH_GATE_INTERVAL_MS = 1_000;
/** How long a console that was restarted waits for the end of what restarted it: a start takes seconds. */
export const RECONCILE_PATIENCE_MS = 60_000;
/** How often the end of an action is written again that could not be written. */
export const HISTORY_RETRY_INTERVAL_MS = 5_000;
/** How long a stop of the console waits for its actions to end on their nodes: TERM and KILL take 15 s; what else stops has its time after. */
export const ACTIONS_STOP_MS = 16_000;
/** How long the file with the processor's temperature, once found, is read without looking for a better one. */
export const SENSOR_SEARCH_INTERVAL_MS = 60_000;
/** Time limit of `sensors -j`. */
export const SENSORS_TIMEOUT_MS = 2_000;
/** How long an answer of `sensors` holds; shorter than the poll interval. */
export const SENSORS_HOLD_MS = 4_000;
/** How long a failed or missing `sensors` command is left alone. */
export const SENSORS_RETRY_MS: number = 10 * 60_000;
/** SetQuota calls that may wait for the file to be written; more are answered OVERLOADED. */
export const QUOTA_SETS_WAITING = 256;
/** How often a change is checked and tried again when shares or moves overtake it. */
export const STALE_ACCESS_RETRIES = 8;
/** Addresses whose RegisterClient calls are counted; the longest unseen is forgotten first. */
export const RATE_LIMIT_ADDRESSES = 20_000;
/** Users whose home node is remembered for WRONG_NODE answers (decision D19). */
export const HOME_ADDRESSES_KEPT = 20_000;
/** A download whose client takes nothing for this long lets go of what it has read ahead (decision D15). */
export const DOWNLOAD_STALL_MS = 1_000;
/** Nodes of one cluster; a registration beyond them is answered OVERLOADED. */
export const NODES_MAX = 1_000;
/** Entries of one answer about roots that others share with a user. */
export const SHARED_ROOTS_LISTED_MAX = 1_000;
/** Roots that administrators have handed over to a user, on the first page of such a list. */
export const INHERITED_ROOTS_LISTED_MAX = 100;
/** Entries of one page of all roots. */
export const ROOTS_LISTED_MAX = 1_000;
/** Bytes of what others share in one page of GetRoots: far below what a gRPC client takes unless told otherwise. */
export const SHARED_ROOTS_PAGE_BYTES = 1_048_576;
/** Commands that may wait for the metadata store; more are answered OVERLOADED. */
export const DIRECTORY_QUEUE_MAX = 10_000;
/** Time for a new connection to the metadata store's database to stand. */
export const POSTGRES_CONNECT_TIMEOUT_MS = 2_000;
/** Time for one statement of the metadata store, and for the locks that it waits for; below that of a whole command. */
export const POSTGRES_STATEMENT_TIMEOUT_MS = 3_000;
/** Time for one command of the metadata store in PostgreSQL, repetitions included; below what a heartbeat waits for its answer. */
export const POSTGRES_COMMAND_TIMEOUT_MS = 4_000;
/** The same for a registration, which may bring 100,000 roots. */
export const POSTGRES_REGISTER_TIMEOUT_MS = 15_000;
/** Repetitions of one command of the metadata store after conflicts with others or lost connections. */
export const POSTGRES_RETRIES_MAX = 10;
/** Connections of one MetaServer to PostgreSQL for users' calls, whose flood must not keep heartbeats waiting. */
export const POSTGRES_USER_CONNECTIONS = 6;
/** Connections of one MetaServer to PostgreSQL for the control plane. */
export const POSTGRES_CONTROL_CONNECTIONS = 4;
/** How often a MetaServer looks whether the metadata store in PostgreSQL is there. */
export const POSTGRES_PROBE_INTERVAL_MS = 2_000;
/** Characters of the labels that a node sends of itself: name, version, instance and data id. */
export const NODE_LABEL_MAX_LENGTH = 128;
/** Commands that one transaction of the storage writer takes. */
export const STORAGE_BATCH_COMMANDS = 512;
/** Where several users change something, a transaction takes no more than so many, of each in turn; two are on their way. */
export const STORAGE_SHARED_BATCH_COMMANDS = 64;
/** Commands that may wait for the storage writer; more are answered OVERLOADED. */
export const STORAGE_QUEUE_COMMANDS = 16_384;
/** Content of small files that may wait for the storage writer; more is answered OVERLOADED. */
export const STORAGE_QUEUE_BYTES = 67_108_864;
/** Directories that the storage writer keeps in memory between transactions. */
export const STORAGE_CACHED_DIRECTORIES = 16_384;
/** Roots and directories that reads keep in memory as long as nothing is committed. */
export const READ_CACHE_ENTRIES = 8_192;
/** Bytes of one upload that may be on their way to the disk before its sender has to wait. */
export const UPLOAD_IN_FLIGHT_BYTES = 8_388_608;
/** The same for all uploads together. */
export const UPLOADS_IN_FLIGHT_BYTES = 33_554_432;
/** And for those of one user. */
export const UPLOADS_IN_FLIGHT_BYTES_PER_USER = 8_388_608;
/** Bytes that all uploads together gather before they write; each gathers its share, within the two limits below. */
export const UPLOADS_GATHERED_BYTES = 16_777_216;
/** Smallest disk write of an upload, except its last. */
export const UPLOAD_GATHER_MIN_BYTES = 65_536;
/** Slices of an upload are gathered up to this size while its disk write before is still running. */
export const UPLOAD_GATHER_BYTES = 524_288;
/** Chunks of one upload that may be complete and still wait for their flush before its sender has to wait. */
export const UPLOAD_CHUNKS_FLUSHING = 4;
/** Finished chunks of one upload that are handed to the database together before its commit. */
export const UPLOAD_STAGED_CHUNKS = 256;
/** Unfinished resumable uploads that are kept for one user; one more is answered TOO_MANY_UPLOADS (decision D15). */
export const UPLOADS_KEPT_PER_USER = 256;
/** A resumable upload that has not moved for this long is dropped (decision D15). */
export const UPLOAD_IDLE_MS: number = 24 * 60 * 60_000;
/** After a start no upload expires before this, since the clock may have been set while the machine was off. */
export const UPLOAD_RESTART_GRACE_MS: number = 60 * 60_000;
/** How often expired uploads are looked for. */
export const UPLOAD_EXPIRY_INTERVAL_MS: number = 10 * 60_000;
/** Time in which an upload's header must have come; a stream without one holds a place for nothing. */
export const UPLOAD_HEADER_TIMEOUT_MS = 10_000;
/** Expired uploads that are dropped in one look. */
export const UPLOAD_EXPIRY_BATCH = 256;
/** Ranged writes of all users that may be under way or wait; more are answered OVERLOADED. */
export const RANGE_WRITES_WAITING = 16_384;
/** Those of one user, in all files together; more are answered RATE_LIMITED. */
export const RANGE_WRITES_WAITING_PER_USER = 1_024;
/** Those that may wait for one file, in turns of their users; more are answered OVERLOADED. */
export const RANGE_WRITES_WAITING_PER_FILE = 4_096;
/** Ranged writes that make chunks at once; each holds up to three of them in memory. */
export const RANGE_WRITES_AT_ONCE = 4;
/** Those of one user, so that another's begins at once. */
export const RANGE_WRITES_AT_ONCE_PER_USER = 3;
/** Chunk files put into one directory before the next is taken, so that start-up sweeps few of them. */
export const CHUNKS_PER_DIRECTORY_TURN = 4_096;
/** Chunk files kept open for reading. */
export const OPEN_CHUNK_FILES = 256;
/** Largest directory that is listed in another order than by name. */
export const LIST_SORTED_ENTRIES_MAX = 50_000;
/** Rows that one slice of a background purge removes, so that other commands wait little. */
export const PURGE_SLICE_ROWS = 512;
/** Items of the trash that one transaction removes, so that other commands wait little. */
export const TRASH_PURGE_BATCH = 64;
/** Bytes of paths on one page of the trash, so that stock clients can take it. */
export const TRASH_PAGE_BYTES = 1_000_000;
/** Names that one page of the trash looks up to say whether folders are there; then it ends. */
export const TRASH_PAGE_LOOKUPS = 16_384;
/** Former shares of one item of the trash that are listed; the rest is counted out. */
export const TRASH_FORMER_SHARES_LISTED = 100;
/** What administrators have seen of a user's trash, as kept for that user and shown to them. */
export const OPERATOR_LOOKS_PER_USER = 20;
/** The same of all users of a node together. */
export const OPERATOR_LOOKS_KEPT = 20_000;
/** Characters of the reason that an administrator names for it. */
export const OPERATOR_REASON_MAX_LENGTH = 200;
/** One file of the audit log; the next line begins another. */
export const AUDIT_FILE_MAX_BYTES = 16_777_216;
/** Files of the audit log that are kept; the oldest goes first. */
export const AUDIT_FILES_KEPT = 16;
/** Audit lines that may wait for the disk; more are dropped and counted in the next line that can be written. */
export const AUDIT_PENDING_BYTES = 16_777_216;
/** Audit lines are flushed together at most this often. */
export const AUDIT_FLUSH_INTERVAL_MS = 200;
/** The newest audit lines, kept in memory for whoever follows the log. */
export const AUDIT_RECENT_LINES = 1_000;
/** Lines of one answer about the audit log. */
export const AUDIT_PAGE_LINES = 1_000;
/** How long a log that does not go on from what was gathered may take to be read to its end before it is accused. */
export const AUDIT_SUSPECT_MS = 600_000;
/** Bytes of one answer about the audit log, and of what is read of a file at a time. */
export const AUDIT_PAGE_BYTES = 1_048_576;
/** Characters of one text in an audit line: a username and the longest path fit. */
export const AUDIT_TEXT_MAX_LENGTH = 4_400;
/** One file of the audit lines that the console has gathered; the next begins another. */
export const AUDIT_COPY_FILE_BYTES = 16_777_216;
/** Files of gathered audit lines that are kept, 2 GiB in all; the oldest goes first. */
export const AUDIT_COPY_FILES_KEPT = 128;
/** How often the console asks a node for its audit lines; what is lost with the node's disk is younger than this. */
export const AUDIT_GATHER_INTERVAL_MS = 30_000;
/** Nodes asked for audit lines at once. */
export const AUDIT_GATHERS_AT_ONCE = 8;
/** Pages of audit lines that are taken from a node in one go, so that one with much to tell does not hold a place. */
export const AUDIT_GATHER_PAGES = 8;
/** Time in which a page of audit lines must have arrived. */
export const AUDIT_GATHER_TIMEOUT_MS = 5_000;
/** Bytes of a page of audit lines with all that is around them, and of the longest line beyond the page's own bound. */
export const AUDIT_GATHER_MAX_BYTES = 2_097_152;
/** Longest audit line that is taken from a node. */
export const AUDIT_GATHERED_LINE_MAX_BYTES = 65_536;
/** Bytes of audit lines that are taken from one node in a day, so that one that lies cannot push the others' out. */
export const AUDIT_GATHER_NODE_DAY_BYTES = 67_108_864;
/** Chains that are begun for one node, one more with each break; then an operator must look. */
export const AUDIT_GENERATIONS_MAX = 16;
/** How often gathered lines are flushed together at most. */
export const AUDIT_COPY_FLUSH_INTERVAL_MS = 1_000;
/** How often it is written down where each chain stands; a start reads again what came since. */
export const AUDIT_HEADS_INTERVAL_MS = 60_000;
/** Bytes of gathered lines that one answer looks through; the next page goes on where it has ended. */
export const AUDIT_SCAN_MAX_BYTES = 8_388_608;
/** Lines of one page of the console's list of acts. */
export const AUDIT_LIST_MAX = 500;
/** How long what is in the trash is kept by default (decision D14): 30 days. */
export const TRASH_RETENTION_MS: number = 30 * 24 * 3_600_000;
/** The trash is never purged for space before this age (decision D14): 24 hours. */
export const TRASH_MIN_AGE_MS: number = 24 * 3_600_000;
/** The trash is purged when less than this is free above the reserve (decision D14): 5 GiB. */
export const TRASH_SPACE_MARGIN_BYTES: bigint = 5_368_709_120n;
/** Users above this share of their quota give up the oldest of their trash when space is needed (decision D14), in percent. */
export const TRASH_SPACE_QUOTA_PERCENT = 80;
/** How often the trash is looked through for what has expired. */
export const TRASH_EXPIRY_INTERVAL_MS: number = 10 * 60_000;
/** How often free space is compared with what the trash must give way for. */
export const TRASH_SPACE_INTERVAL_MS = 5_000;
/** Rows that one slice of a copy makes, so that other commands wait little. */
export const COPY_SLICE_ROWS = 512;
/** Copies under way at once; others wait in turns of their users. */
export const COPIES_AT_ONCE = 64;
/** Those of one user. */
export const COPIES_PER_USER = 4;
/** Copies that may wait; more are answered OVERLOADED. */
export const COPIES_WAITING = 4_096;
/** Those of one user; more are answered RATE_LIMITED. */
export const COPIES_WAITING_PER_USER = 64;
/** Slices of copies that lie before the storage writer at once, of different users: others' commands wait for no more than these. */
export const COPY_SLICES_AT_ONCE = 2;
/** Longest pause before a refused drop of what an upload or a copy has staged is tried again. */
export const DROP_RETRY_MAX_MS = 10_000;
/** Removed chunk files that are unlinked together. */
export const GARBAGE_BATCH_CHUNKS = 256;
/** Size of the write-ahead log from which it is brought into the database. */
export const WAL_CHECKPOINT_BYTES = 33_554_432;
/** Space kept free for removals on a full disk. */
export const STORAGE_SLACK_BYTES = 16_777_216;
/** Inodes and content lists that one root may ever have made; their numbers are never used again. */
export const IDS_PER_ROOT: number = 2 ** 32 - 1;
/** Roots that one data directory may ever hold; with the above, ids stay below 2^53. */
export const ROOTS_PER_DATA_DIRECTORY: number = 2 ** 21 - 1;
/** Levels of directories below a root: as many as the longest path can name (decision D13). */
export const DIRECTORY_DEPTH_MAX: number = PATH_MAX_BYTES / 2;
/** Differences that a check of a data directory lists one by one; the rest is counted. */
export const CHECK_DIFFERENCES_LISTED = 1_000;
/** How long a server waits for a port that another process has, and how often it looks: an outgoing connection may hold it for a moment. */
export const PORT_TAKEN_WAIT_MS = 5_000;
export const PORT_TAKEN_TRY_MS = 200;
/** Connections of the metrics listener at once. */
export const METRICS_CONNECTIONS_MAX = 64;
/** Time in which a request to the metrics listener must have arrived. */
export const METRICS_REQUEST_TIMEOUT_MS = 10_000;
/** How long the metrics listener keeps a connection that nobody uses: longer than the console lets pass between two polls. */
export const METRICS_KEEP_ALIVE_MS = 15_000;
/** Connections of one address to the metrics listener, so that one visitor cannot shut the others out. */
export const METRICS_CONNECTIONS_PER_ADDRESS = 16;
/** Answers of the metrics listener under way at once; more are answered 503. */
export const METRICS_ANSWERS_MAX = 16;
/** Time in which a reader must have taken an answer of the metrics listener. */
export const METRICS_ANSWER_TIMEOUT_MS = 15_000;
/** Users that the per-user maps of /metrics list; sums have them all. A multiple of 64. */
export const METRICS_USERS_LISTED_MAX = 51_200;
/** Notices: raises of one key within FLAP_WINDOW_MS that are told; one more is told as flapping (decision D11). */
export const FLAP_RAISES_MAX = 3;
/** Notices: the time in which raises are counted, and for which a flapping key must be stable to be told again (decision D11). */
export const FLAP_WINDOW_MS: number = 30 * 60_000;
/** Notices: nothing is told for this long after a start (decision D11). */
export const NOTICE_START_HOLD_MS = 30_000;
/** Notices: what comes up within this time goes out together (decision D11). */
export const NOTICE_GROUP_MS = 30_000;
/** Notices: what lasts is told again after this time (decision D11). */
export const NOTICE_REPEAT_MS: number = 4 * 3_600_000;
/** Notices: keys that are watched at once; further ones are counted and not told until others have calmed down. */
export const NOTICE_KEYS_MAX = 5_000;
/** Notices: alerts in one message; what is new beyond them goes out in further messages. */
export const NOTICE_ALERTS_MAX = 50;
/** Notices: messages that wait on disk; the oldest give way, and are counted (decision D11). */
export const NOTICE_QUEUE_MAX = 1_000;
/** Notices: a message that could not be delivered for this long is dropped, and counted. */
export const NOTICE_LIFETIME_MS: number = 24 * 3_600_000;
/** Notices: pauses between the tries to deliver a message (decision D11: three tries). */
export const NOTICE_RETRY_MS: readonly number[] = [1_000, 5_000];
/** Notices: how long a receiver that took no try rests, first and at most; each time twice as long. */
export const NOTICE_REST_MS = { first: 30_000, longest: 600_000 } as const;
/** Notices: time for one try, from the connection to the end of the answer. */
export const NOTICE_TRY_TIMEOUT_MS = 15_000;
/** Notices: how long a stopping console waits for a try under way, so that it need not be made again. */
export const NOTICE_STOP_GRACE_MS = 2_000;
/** Notices: bytes of a receiver's answer that are read at most; nobody looks at them. */
export const NOTICE_ANSWER_MAX_BYTES = 65_536;
/** Notices: messages of the past that GET /api/notices lists. */
export const NOTICES_TOLD_LISTED = 200;
/** Notices: receivers in the settings. */
export const NOTICE_RECEIVERS_MAX = 16;
/** Silences kept, those that have ended included; ended ones give way to new ones. */
export const SILENCES_MAX = 1_000;
/** How long a silence that has ended is listed: five days, as Alertmanager keeps them. */
export const SILENCE_KEPT_MS: number = 120 * 3_600_000;
/** Longest silence: a year. */
export const SILENCE_LONGEST_MS: number = 366 * 86_400_000;
/** Matchers of one silence. */
export const SILENCE_MATCHERS_MAX = 16;
/** Characters of a matcher's value. */
export const SILENCE_VALUE_MAX_LENGTH = 256;
/** Steps that a pattern of a silence may compile to; matching costs at most that times the length of the text. */
export const PATTERN_STEPS_MAX = 500;
/** Maintenance windows open at once, one per action. */
export const MAINTENANCE_WINDOWS_MAX = 1_000;
/** A window goes on for this long after its nodes answer again (decision D7). */
export const MAINTENANCE_AFTER_HEALTHY_MS = 60_000;
/** Users that an alert about a restored node names, of those whose roots are gone, older, or have an older quota each. */
export const RESTORE_USERS_NAMED = 20;
/** How often the metadata store is told of a maintenance that it could not be told of. */
export const PLACEMENT_PAUSE_RETRY_MS = 10_000;
/** How often it is told of one again, since it may have been lost or restored. */
export const PLACEMENT_PAUSE_RENEW_MS = 300_000;
/** Nodes of one action (decision D17). */
export const ACTION_NODES_MAX = 50;
/** Time that an action may take on one node, in seconds (decision D7). */
export const ACTION_LIMIT_SECONDS = {
  pull: 120,
  build: 1_800,
  restart: 60,
  reboot: 600,
  apt: 3_600,
  logs: 30,
} as const;
/** Time that a custom command may take, in seconds, unless it says otherwise (decision D7). */
export const CUSTOM_LIMIT_SECONDS = 60;
/** Longest time that a custom command may ask for, in seconds (decision D7). */
export const CUSTOM_LIMIT_MAX_SECONDS = 3_600;
/** A custom command (decision D17): 8 KiB. */
export const CUSTOM_COMMAND_MAX_BYTES = 8_192;
/** Lines of a log that an action fetches unless it says otherwise (decision D10). */
export const LOG_LINES_DEFAULT = 200;
/** A node's lock outlives the action's limit by this, then it is free whatever became of the action (decision D7). */
export const NODE_LOCK_GRACE_MS = 60_000;
/** Bytes of standard output, and of standard error, that a record of the history keeps in itself (decision D7): 64 KiB. */
export const ACTION_OUTPUT_KEPT_BYTES = 65_536;
/** The same for each of its targets; the whole text lies beside the history. */
export const TARGET_OUTPUT_KEPT_BYTES = 4_096;
/** Newest records of the history that keep output in themselves (decision D7). */
export const ACTION_RECORDS_WITH_OUTPUT = 20;
/** Finished rollouts that are kept; unfinished ones are kept besides. A few kilobytes for each node. */
export const ROLLOUTS_KEPT = 50;
/** Rollouts that run at the same time, on different nodes; more are refused. */
export const ROLLOUTS_ACTIVE_MAX = 2;
/** Time that a node has after its restart for /health and a good poll, in seconds, unless the rollout says otherwise. */
export const ROLLOUT_HEALTH_SECONDS = 60;
/** How long a node is watched after that, in seconds: six polls. */
export const ROLLOUT_OBSERVE_SECONDS = 30;
/** The longest that a rollout may give for either, in seconds: ten minutes. */
export const ROLLOUT_WAIT_MAX_SECONDS = 600;
/** Failed operations a second above those of before at which a rollout stops, unless it says otherwise: three in its 30 s. */
export const ROLLOUT_ERRORS_PER_SECOND_ABOVE = 0.1;
/** How often a rollout looks at a node that it watches. */
export const ROLLOUT_LOOK_INTERVAL_MS = 1_000;
/** How long after its time a watched node's last poll is waited for: two polls and the time that one may take. */
export const ROLLOUT_LAST_POLL_MS = 15_000;
/** Time for reading a node's commit before a rollout changes anything. */
export const ROLLOUT_CHECK_LIMIT_MS = 30_000;
/** Presets of actions, the built-in ones included. */
export const ACTION_PRESETS_MAX = 100;
/** Bytes of the file of presets. */
export const PRESETS_FILE_MAX_BYTES = 1_048_576;
/** Most records that -history_limit may ask for. */
export const COMMAND_HISTORY_MAX_RECORDS = 10_000;
/** FileServers of one demonstration (`grove up`). */
export const DEMO_NODES_MAX = 20;
/** Bytes of paths on one page of a user's shares, so that stock clients can take it. */
export const SHARE_PAGE_BYTES = 1_000_000;
/** Users of whom `grove why` tells an owner how they reach a place, or do not. */
export const EXPLAINED_USERS_MAX = 20;
/** From the end of one recount of all counters to the start of the next (decision D16). */
export const RECOUNT_PAUSE_MS: number = 60 * 60_000;
/** Rows that the recount reads per second: 10 million files take some 25 minutes, and a look costs others nothing. */
export const RECOUNT_ROWS_PER_SECOND = 16_384;
/** Rows that the recount adds up in one statement, and after which it lets go of its snapshot unless one directory has more. */
export const RECOUNT_SLICE_ROWS = 4_096;
/** Counters found wrong that one pass of the recount names in the log; all are counted. */
export const RECOUNT_FOUND_LOGGED = 100;
/** Users with whom one file or folder is shared directly, or who are taken out of shares there; a group that is larger shares a folder above (spec 4.5). */
export const GRANTS_PER_INODE = 256;
/** Bytes of a ListDir reply: below the 4,194,304 that stock clients take. Pages of deep or widely shared folders are shorter for it. */
export const LIST_REPLY_MAX_BYTES = 4_000_000;
/** Pairs of owner and user whose shares the reads of a node keep in memory; beyond them all are read anew. */
export const SHARED_PATHS_CACHED = 8_192;
/** Shares of one root that a registration carries, in bytes; those of a root with more follow one by one. */
export const REGISTERED_GRANTS_MAX_BYTES = 262_144;
/** Bytes of one page of a registration: some 7,000 roots. */
export const REGISTRATION_PAGE_BYTES = 786_432;
/** Pages of one registration: more roots than a data directory holds. */
export const REGISTRATION_PAGES_MAX = 512;
/** Pages of all unfinished registrations that the metadata store keeps; more are answered OVERLOADED. */
export const REGISTRATION_PAGES_KEPT = 2_048;
/** How long the pages of an unfinished registration are kept. */
export const REGISTRATION_PAGES_TTL_MS: number = 10 * 60_000;
/** How often a MetaServer writes down which nodes there are, for when the store is lost. */
export const KNOWN_NODES_INTERVAL_MS = 60_000;
/** How long Share waits for the MetaServer to hear of it, so that the other user finds the way at once; it is told later in any case. */
export const SHARE_TOLD_WAIT_MS = 1_000;
/** Shares of one root together, and what is taken out of them: what a move may have to rename and a node has to tell the MetaServer in one go. */
export const GRANTS_PER_ROOT = 2_048;
/** Life of a node's certificate unless the operator says otherwise (decision D20): 90 days. */
export const NODE_CERTIFICATE_LIFETIME_MS: number = 90 * 86_400_000;
/** Days before a certificate's end from which servers warn of it (failure B-11). */
export const CERTIFICATE_WARNING_DAYS = 14;
/** How often servers look whether their certificate files or the list of revoked ones have changed. */
export const CERTIFICATE_CHECK_INTERVAL_MS = 5_000;
/** Certificates that the authority remembers; 1,000 nodes that renew every 60 days need far fewer. */
export const ISSUED_CERTIFICATES_MAX = 100_000;
/** How long the authority remembers a certificate after its end. */
export const ISSUED_KEPT_AFTER_END_MS: number = 30 * 86_400_000;
/** Serial numbers on the list of revoked certificates. */
export const REVOKED_CERTIFICATES_MAX = 100_000;
/** Join tokens that may wait to be used. */
export const JOIN_TOKENS_MAX = 1_000;
/** Default life of a join token: one hour (decision D20). */
export const JOIN_TOKEN_LIFETIME_MS = 3_600_000;
/** Longest life of a join token: a week. */
export const JOIN_TOKEN_LIFETIME_MAX_MS: number = 7 * 86_400_000;
/** Wrong join tokens per address and minute; more are answered RATE_LIMITED. */
export const JOIN_FAILURES_PER_MINUTE_PER_ADDRESS = 5;
/** Renewals of one node's certificate per hour. */
export const RENEWALS_PER_HOUR_PER_NODE = 20;
/** DNS names and addresses that a node may ask for in its certificate, each. */
export const CERTIFICATE_NAMES_MAX = 16;
/** Files that one command of the storage writer marks as damaged; further ones that share a chunk follow in the next. */
export const DAMAGED_FILES_PER_COMMAND = 512;
/** Damaged files that are listed one by one, in the metrics document and elsewhere; the rest is counted. */
export const DAMAGED_FILES_LISTED = 100;
/** Damaged chunks and files whose marking may be under way at once; what is found beyond them is found again by the next look. */
export const DAMAGE_REPORTS_IN_FLIGHT = 1_024;
/** Chunks of a file whose list is checked against the file's checksum before it is read: 1 GB in a millisecond of the main thread. */
export const LIST_CHECK_CHUNKS = 256;
/** Longest time that one check of `grove doctor` may take; all run at once. */
export const DOCTOR_CHECK_TIMEOUT_MS = 5_000;
/** Bytes that the scrub reads per second unless told otherwise: a tenth of what an SD card gives, and 10 TiB in 30 days. */
export const SCRUB_BYTES_PER_SECOND = 4_194_304;
/** From the end of one pass of the scrub to the start of the next (failure A-08). */
export const SCRUB_PAUSE_MS: number = 30 * 86_400_000;
/** How often the places of the scrub and the recount are written down; a crash repeats so much of a pass. */
export const PASS_SAVE_INTERVAL_MS = 30_000;
/** How often a node looks whether the next pass of the scrub or of the recount is due. */
export const PASS_DUE_CHECK_MS = 60_000;
/** How long a node serves before its scrub and its recount go on. */
export const PASS_START_DELAY_MS = 5_000;
/** Rows that the scrub takes in one look at the database. */
export const SCRUB_ROWS = 256;
/** Content of small files that the scrub takes in one look at the database. */
export const SCRUB_INLINE_BYTES = 1_048_576;
/** Time over which rates of errors and of `/api/performance` are taken (T4, decision D9). */
export const RATE_WINDOW_MS = 60_000;
/** Intervals between answers of a node that may lie in that time: twice what the poll interval makes. */
export const RATE_INTERVALS_KEPT = 24;
/** Failures with nothing that went well between them from which a node counts as failing at everything, however few they are (T4). */
export const FAILING_RUN_MIN_ERRORS = 5;
/** How long such failures have gone on at least. */
export const FAILING_RUN_MIN_MS = 60_000;
/** A node that was asked for nothing for longer than this counts as failing no more. */
export const FAILING_RUN_QUIET_MS: number = 5 * 60_000;
/** Operators signed in to one console (D3): more than a team has browsers; one more ends the oldest session. */
export const ADMIN_SESSIONS_MAX = 100;
/** Body of a request to the console (D17). */
export const CONSOLE_BODY_MAX_BYTES = 65_536;
/** Head of a request to the console: all headers and the path (D17). */
export const CONSOLE_HEADERS_MAX_BYTES = 16_384;
/** Connections to the console: its 2,000 WebSockets and as many browsers again. */
export const CONSOLE_CONNECTIONS_MAX = 4_096;
/** Connections to the console from one address that is neither this machine nor a trusted proxy: one holder cannot take them all. */
export const CONSOLE_CONNECTIONS_PER_ADDRESS = 256;
/** Time for a request's head and body to arrive at the console: whoever dawdles holds a connection. */
export const CONSOLE_REQUEST_TIMEOUT_MS = 30_000;
/** How long the console keeps a connection on which nothing happens: longer than proxies do, so that they close first. */
export const CONSOLE_KEEP_ALIVE_MS = 72_000;
/** Wrong places in a request that its problem document names; the rest is more of the same. */
export const PROBLEM_FIELDS_MAX = 20;
/** Requests a second from one address that is not signed in, and how many it may save up (D17). */
export const API_VISITOR_RATE = { perSecond: 20, burst: 40 } as const;
/** Requests a second in one operator's session, and how many it may save up (D17). */
export const API_OPERATOR_RATE = { perSecond: 50, burst: 100 } as const;
/** Share of a poll's interval by which a node's polls start apart from where they were (decision D24: jittered). */
export const POLL_JITTER_MS = 100;
/** Time in which a node must have answered a poll in full (decision D24, M-04). */
export const POLL_TIMEOUT_MS = 3_000;
/** Time for the security events that are asked for after a good poll; with the poll's own it stays below the interval. */
export const POLL_EVENTS_TIMEOUT_MS = 1_500;
/** Bytes of a node's document: as many users as a node lists, with long names. */
export const POLL_ANSWER_MAX_BYTES = 33_554_432;
/** Bytes of a node's answer that need no room from the pool: a few hundred users. */
export const POLL_ANSWER_FREE_BYTES = 131_072;
/** Bytes that all answers under way may hold beyond that; when it is full the largest gives way. */
export const POLL_POOL_BYTES = 100_663_296;
/** Bytes of a node's list of security events: 100 of them with long names. */
export const POLL_EVENTS_MAX_BYTES = 131_072;
/** Bytes of a node's document that are read in one go; larger ones in pieces, so that the event loop turns between them. */
export const POLL_PIECE_BYTES = 65_536;
/** How often the console looks whether a node has been silent for too long (M-08: offline at 30 to 35 s). */
export const STATUS_CHECK_INTERVAL_MS = 1_000;
/** Nodes that vanished from the metadata store are shown as offline for this long (decision D19). */
export const VANISHED_NODE_KEPT_MS: number = 24 * 3_600_000;
/** Nodes that the console shows, those that vanished included; beyond them the one that vanished first is forgotten. */
export const CONSOLE_NODES_MAX = 2_000;
/** Users that the console keeps of all nodes together; a node that says it has more than is left counts as if it had told of none. */
export const CONSOLE_USERS_MAX = 300_000;
/** Users near their quota that the console keeps of all nodes together, beside those: alerts do not depend on who is listed (spec 2.7). */
export const CONSOLE_NEAR_USERS_MAX = 100_000;
/** Users that every node may tell of however many the others have. */
export const CONSOLE_USERS_PER_NODE_FREE = 200;
/** How long an address that a node's name led to is used before the name is looked up again. */
export const NODE_NAME_LIFETIME_MS = 30_000;
/** Names of nodes that are looked up at once; each may hold a thread that files need too. */
export const NODE_LOOKUPS_AT_ONCE = 2;
/** Time for one look-up of a node's name before others have its turn. */
export const NODE_LOOKUP_TIMEOUT_MS = 5_000;
/** Threads of the four that look-ups may hold in all, those included that have taken longer than that and hang: files need one. */
export const NODE_LOOKUP_THREADS = 3;
/** Blocks of addresses that -allow_nodes takes. */
export const ALLOWED_NETWORKS_MAX = 64;
/** Nodes whose last hour is kept, 50 kB each; one more takes the place of the one that is silent longest. */
export const HISTORY_NODES_MAX = 2_048;
/** Calls of a FileServer that take longer are told, with what they waited for. */
export const SLOW_CALL_MS = 1_000;
/** Rows of one minute of a node that are kept: 7 days, 0.8 MB. */
export const MINUTE_ROWS_KEPT: number = 7 * 24 * 60;
/** Rows of 15 minutes of a node that are kept: 400 days, 3 MB. */
export const QUARTER_ROWS_KEPT: number = 400 * 24 * 4;
/** How often these rows are written down; until then they are in the last hour. */
export const LONG_HISTORY_SAVE_INTERVAL_MS: number = 5 * 60_000;
/** Nodes of which they are kept, the cluster as one; the longest silent gives way. 1 GB in all. */
export const LONG_HISTORY_NODES_MAX = 257;
/** Points of one answer about more than the last hour. */
export const LONG_HISTORY_POINTS_MAX = 3_000;
/** Up to so many nodes the metrics snapshot is written as a whole every time (T18). */
export const SNAPSHOT_WHOLE_NODES_MAX = 10;
/** Up to so many bytes too: at one a minute they are 0.6 GB a day. Beyond, a journal is appended to (T18). */
export const SNAPSHOT_WHOLE_MAX_BYTES = 400_000;
/** How often the journal of the metrics snapshot is put together into a whole file (T18). */
export const SNAPSHOT_COMPACTION_INTERVAL_MS = 3_600_000;
/** The same for what is kept of 90 days, which changes little: once a day. */
export const TREND_COMPACTION_INTERVAL_MS: number = 24 * 3_600_000;
/** Largest file of kept figures that is read; four times what the limits above and below make. */
export const SERIES_FILE_MAX_BYTES: number = 512 * 1_048_576;
/** One line of such a file: one series, some ten times as long as it can be. */
export const SERIES_LINE_MAX_BYTES = 2_097_152;
/** Damaged files of one name that are kept set aside; the oldest goes first. */
export const CORRUPT_FILES_KEPT = 3;
/** Bytes of figures handed to the thread that writes them in one go: copied in about a millisecond. */
export const SERIES_BATCH_BYTES = 1_048_576;
/** Series handed over in one go. */
export const SERIES_BATCH = 512;
/** Points of a node's disk that are kept every five minutes: of two days. */
export const TREND_FINE_POINTS = 576;
/** Distance of those points. */
export const TREND_FINE_MS: number = 5 * 60_000;
/** Points of a node's disk that are kept every hour: of 90 days. */
export const TREND_POINTS = 2_160;
/** Points of a user's usage that are kept every hour: of a week. */
export const TREND_USER_POINTS = 168;
/** Distance of those points. */
export const TREND_MS = 3_600_000;
/** Users whose usage is kept for a forecast, 1.5 kB each. */
export const TREND_USERS_MAX = 10_000;
/** New users that one look at a node takes in, so that a node with many does not hold up the rest. */
export const TREND_NEW_USERS_AT_ONCE = 500;
/** Time that forecasts need at least: slopes of minutes say nothing of days. */
export const FORECAST_MIN_SPAN_MS: number = 6 * 3_600_000;
/** Forecasts follow the pace of this long: a week. */
export const FORECAST_WINDOW_MS: number = 7 * 24 * 3_600_000;
/** Points of a disk between which slopes are taken, each with each: about 0.2 ms. */
export const FORECAST_DISK_POINTS = 64;
/** The same of a user: a page of 500 users is to take few milliseconds. */
export const FORECAST_USER_POINTS = 32;
/** Exports of history under way at once; more are answered RATE_LIMITED. */
export const HISTORY_EXPORTS_MAX = 8;
/** The same of one address. */
export const HISTORY_EXPORTS_PER_ADDRESS = 2;
/** Time in which a reader must have taken an export: 1,000 nodes make 90 MB. */
export const HISTORY_EXPORT_TIMEOUT_MS: number = 5 * 60_000;
/** Rows of an export that are made before other work gets its turn: about a millisecond. */
export const CSV_ROWS_PER_PIECE = 200;
/** How long an answer about rates may be given again: as many visitors look at the same one. */
export const PERFORMANCE_KEPT_MS = 1_000;
/** Forecasts beyond are none: ten years. */
export const FORECAST_DAYS_MAX = 3_650;
/** Bytes of the head of a node's answer. */
export const NODE_ANSWER_HEAD_MAX_BYTES = 16_384;
/** How long an answer of GET /api/cluster is given again although a node has changed: a thousand nodes change 200 times a second. */
export const CLUSTER_VIEW_KEPT_MS = 200;
/** Arguments of a service's program, and as many variables of its environment, that are kept for a node. */
export const SSH_ARGUMENTS_MAX = 64;
/** Bytes of one such argument, value or path. */
export const SSH_TEXT_MAX_BYTES = 4_096;
/** How long after a look at the cluster the views are kept ready for the next. */
export const CLUSTER_VIEW_LOOKED_AT_MS = 30_000;
/** How long a host may take to show its SSH keys. */
export const SSH_KEYSCAN_TIMEOUT_MS = 5_000;
/** Bytes of the file that says how a node's services are started. */
export const SSH_SERVICES_FILE_MAX_BYTES = 65_536;
/** Bytes of a hosted snippet that says where nodes are: some hundred bytes for each of a thousand. */
export const SNIPPET_MAX_BYTES = 262_144;
/** Time for reading it. */
export const SNIPPET_TIMEOUT_MS = 5_000;
/** Where SSH listens unless a node says otherwise. */
export const SSH_PORT = 22;
/** Time for reaching a node over SSH: connecting, keys, the first answer of its shell. */
export const SSH_CONNECT_TIMEOUT_MS = 15_000;
/** How often a silent SSH connection is asked whether it lives, in seconds, as ssh takes it (D20). */
export const SSH_KEEPALIVE_SECONDS = 15;
/** Questions without an answer after which it does not (D20). */
export const SSH_KEEPALIVE_COUNT = 3;
/** A connection to a node that nobody uses is kept for this long: an operator's next action finds it. */
export const SSH_IDLE_MS: number = 5 * 60_000;
/** Connections to nodes, one process of 8 MB each: five actions of 50 nodes. Beyond them idle ones go; without such, actions wait for none. */
export const SSH_CONNECTIONS_MAX = 250;
/** What is kept of ssh's complaints to read the reason from. */
export const SSH_COMPLAINT_MAX_BYTES = 8_192;
/** Time that the processes of a cancelled action have between TERM and KILL (D7). */
export const REMOTE_TERM_GRACE_MS = 10_000;
/** Time after KILL in which the last of them must be gone. */
export const REMOTE_KILL_GRACE_MS = 5_000;
/** Time for the answer to a question about an action on a node, connecting not included. */
export const REMOTE_ANSWER_TIMEOUT_MS = 10_000;
/** How long a node that was lost in the middle of an action is looked for; then its state is unknown. */
export const REMOTE_LOST_PATIENCE_MS = 60_000;
/** How often it is looked for, and after a reboot too. */
export const REMOTE_LOST_INTERVAL_MS = 2_000;
/** After an action's last word its connection is given this long to close by itself: what it left behind may hold it open. */
export const REMOTE_LINGER_MS = 2_000;
/** Files of actions whose end was heard that a node keeps before it removes them all: a few bytes each, and one process for all. */
export const REMOTE_HEARD_FILES = 32;
/** What a step that tells one fact may say. */
export const REMOTE_CAPTURE_MAX_BYTES = 4_096;
/** Longest script sent to a node's shell: all steps of an action. */
export const REMOTE_SCRIPT_MAX_BYTES = 262_144;
/** Longest line with which that script speaks to us; the facts in it are short. */
export const REMOTE_WORD_MAX_BYTES = 1_024;
/** Time that a service started as a binary has to end before KILL, its transfers included. */
export const DAEMON_STOP_SECONDS = 20;
/** Secrets that are looked for in the output of actions. */
export const OUTPUT_SECRETS_MAX = 64;
/** Shorter ones are not looked for: they would mask half of every output. */
export const OUTPUT_SECRET_MIN_BYTES = 4;
/** Entries up to which a directory is sorted where reads are answered: as much work as a page of a larger one by name. */
export const LIST_SORT_AT_ONCE = 1_000;
/** Larger directories that are sorted at once, each of another user; their slices take turns. */
export const SORTED_LISTINGS_AT_ONCE = 4;
/** Sorted listings of larger directories that one user may have under way; more are answered OVERLOADED. */
export const SORTED_LISTINGS_PER_USER = 16;
/** The same for all users. When they are used up the user who has most gives the last one to a user who has none. */
export const SORTED_LISTINGS_TOTAL = 4_096;
/** Entries that are looked at in one slice of sorting a larger directory. */
export const SORTED_SLICE_ROWS = 2_048;
