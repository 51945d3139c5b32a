// The limits of the client, each with its unit in its name.

/** Small files of one command in transfer; with the other kinds below the 100 calls of a connection (D17). */
export const TRANSFERS_IN_FLIGHT = 64;
/** Bytes of small files of one command that are sent at once: at first, and the bounds of what a link may earn. */
export const IN_FLIGHT_BYTES_FIRST: number = 512 * 1024;
export const IN_FLIGHT_BYTES_MIN: number = 256 * 1024;
export const IN_FLIGHT_BYTES_MAX = 256_000_000;
/** Folders of one command that are made, or listed, at the same time, beside the transfers. */
export const FOLDERS_IN_FLIGHT = 16;
/** Files above LARGE_FILE_BYTES transferred at the same time: each holds buffers of several chunks. */
export const LARGE_TRANSFERS_IN_FLIGHT = 4;
/** A file up to this size is read and written in one go, above it chunk by chunk. */
export const SMALL_FILE_BYTES: number = 256 * 1024;
/** Longest step of a disk's clock for file times, with a margin, and the longest time of one write. */
export const FILE_TIME_MS = 20;
/** The same for a disk with a resolution of one or two seconds. */
export const COARSE_FILE_TIME_MS = 2_000;
/** Checks whether a recently written file is settled, one such step apart. */
export const SOURCE_LOOKS_MAX = 10;
/** A file above this size counts against LARGE_TRANSFERS_IN_FLIGHT. */
export const LARGE_FILE_BYTES: number = 4_000_000;
/** A file from this size on is transferred resumably; below, a cut one is sent again (D15). */
export const RESUMABLE_FROM_BYTES = 16_000_000;
/** Times that one attempt follows the server to another offset. */
export const UPLOAD_OFFSETS_TRIED = 4;
/** Times that one upload begins anew because the server does not know it any more. */
export const UPLOAD_STARTS_MAX = 3;
/** Records of unfinished uploads that are checked for old ones. */
export const UPLOAD_MEMORY_MAX = 1_000;
/** How long an unfinished upload is remembered: longer than any server keeps it. */
export const UPLOAD_MEMORY_MS: number = 48 * 60 * 60_000;
/** Records of whole folders that are checked for old ones. */
export const TRANSFER_RECORDS_MAX = 10_000;
/** How long such a record is kept after its last run: longer than a year, for yearly jobs. */
export const TRANSFER_RECORD_MS: number = 400 * 24 * 60 * 60_000;
/** Times that one download begins anew because the file changed or the partial content was wrong. */
export const DOWNLOAD_STARTS_MAX = 4;
/** How long another machine's part of a download must rest before it is taken over. */
export const PART_IDLE_MS: number = 10 * 60_000;
/** Bytes of a stream that prove progress: more than the sockets buffer for a dead server. */
export const PROGRESS_BYTES = 16_777_216;
/** Files that a scan of a local or remote tree may be ahead of the transfers. */
export const SCAN_AHEAD_MAX = 100_000;
/** Folders below one another that a scan goes into; a path has no room for more (decision D13). */
export const FOLDER_DEPTH_MAX = 2_048;
/** Bytes that a download hands to the disk at a time. */
export const DOWNLOAD_BLOCK_BYTES: number = 1_048_576;
/** Blocks of one download that are filled or wait for the disk; when all do, the sender waits. */
export const DOWNLOAD_BLOCKS_MAX = 4;
/** Files and folders that one --delete takes away; more mean a wrong source or target. */
export const SURPLUS_MAX = 100_000;
/** Of those, the ones that are named before the question. */
export const SURPLUS_SHOWN_MAX = 20;
/** Failures of single files that are printed; the rest is counted. */
export const FAILURES_SHOWN_MAX = 50;

/** Attempts at one operation when the server does not answer, at most. */
export const ATTEMPTS_MAX = 100;
/** How long an operation is retried without an answer; GROVE_RETRY_SECONDS changes it. */
export const PATIENCE_MS = 60_000;
/** Attempts where the reason is more likely a typing error than an outage. */
export const UNLIKELY_ATTEMPTS_MAX = 3;
/** Waiting time before the second attempt; each further one waits twice as long, with jitter. */
export const RETRY_FIRST_MS = 200;
/** Longest waiting time between two attempts. */
export const RETRY_LONGEST_MS = 5_000;
/** Time between two notes about the same retry. */
export const RETRY_NOTE_MS = 5_000;
/** Time limit of a call without a stream. */
export const CALL_TIMEOUT_MS = 60_000;
/** Time limit of one server for administrators' calls to all servers. */
export const ADMINISTRATION_TIMEOUT_MS = 5_000;
/** Time limit of lookups and registrations, which an interactive user waits for. */
export const SIGN_IN_CALL_TIMEOUT_MS = 20_000;
/** Times that one operation follows a root to another server (decision T20). */
export const MOVES_MAX = 3;

/** Routes kept on disk; the oldest goes first. */
export const ROUTES_KEPT_MAX = 1_000;
/** Largest of our own files that is read back: profile, credentials, routes. */
export const OWN_FILE_MAX_BYTES: number = 4 * 1_048_576;
/** Largest cluster file and certificate that `login` reads. */
export const SETTINGS_FILE_MAX_BYTES: number = 1_048_576;
/** Longest life of a state and of the wait for the browser (failure C-08). */
export const SIGN_IN_WAIT_MS: number = 10 * 60_000;
/** Longest token or address that may be pasted. */
export const PASTE_MAX_LENGTH = 65_536;
/** Connections to the sign-in's listener at the same time. */
export const CALLBACK_CONNECTIONS_MAX = 16;
/** Lines of the shell's history. */
export const SHELL_HISTORY_LINES = 1_000;
/** Longest time that a Tab waits for names. */
export const COMPLETION_WAIT_MS = 3_000;
/** Names that completion offers at most. */
export const COMPLETIONS_MAX = 1_000;

/** How often the progress bar is drawn anew. */
export const PROGRESS_DRAW_MS = 100;
/** Interval of the progress lines where there is no terminal. */
export const PROGRESS_LINE_MS = 10_000;
/** Time window of the displayed rate. */
export const PROGRESS_RATE_WINDOW_MS = 5_000;

/** Symbolic links to folders that one upload follows: links to links multiply without end. */
export const LINKED_FOLDERS_MAX = 10_000;

/** Interval at which a process checks whether the lock's holder has finished. */
export const PROCESS_LOCK_WAIT_MS = 25;
/** Checks before it continues without the lock: 10 s in all. */
export const PROCESS_LOCK_TRIES = 400;
/** Age at which a lock file counts as abandoned: no action under it takes longer. */
export const PROCESS_LOCK_STALE_MS = 60_000;
