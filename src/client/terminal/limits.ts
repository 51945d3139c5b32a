// Every number that bounds the client, each with its unit in its name.

/** Transfers of one command that are under way at the same time; below the 100 calls of a connection (decision D17). */
export const TRANSFERS_IN_FLIGHT = 64;
/** Files above LARGE_FILE_BYTES that are transferred at the same time: each holds buffers of several chunks. */
export const LARGE_TRANSFERS_IN_FLIGHT = 4;
/** A file up to this size is read and written in one go, above it chunk by chunk. */
export const SMALL_FILE_BYTES: number = 256 * 1024;
/** Longest step of the clock by which a disk tells that a file has changed, with room to spare; and how long one write may take. */
export const FILE_TIME_MS = 20;
/** The same of a disk that counts whole seconds, or every second one. */
export const COARSE_FILE_TIME_MS = 2_000;
/** Times that an upload looks whether a file that has just been written to is at rest, one such step apart. */
export const SOURCE_LOOKS_MAX = 10;
/** A file above this size counts against LARGE_TRANSFERS_IN_FLIGHT. */
export const LARGE_FILE_BYTES: number = 4_000_000;
/** A file from this size on is uploaded and downloaded so that a cut transfer goes on where it was; below, it is sent again (D15). */
export const RESUMABLE_FROM_BYTES = 16_000_000;
/** Times that one attempt follows the server to another offset. */
export const UPLOAD_OFFSETS_TRIED = 4;
/** Times that one upload is begun anew because the server does not know it any more. */
export const UPLOAD_STARTS_MAX = 3;
/** Notes about unfinished uploads that are looked through for old ones. */
export const UPLOAD_MEMORY_MAX = 1_000;
/** How long an unfinished upload is remembered: longer than any server keeps it. */
export const UPLOAD_MEMORY_MS: number = 48 * 60 * 60_000;
/** Records of whole folders that went somewhere, which are looked through for old ones. */
export const TRANSFER_RECORDS_MAX = 10_000;
/** How long such a record is kept after its last run: longer than the year between two runs of something yearly. */
export const TRANSFER_RECORD_MS: number = 400 * 24 * 60 * 60_000;
/** Times that one download begins anew because the file has changed or what was there was wrong. */
export const DOWNLOAD_STARTS_MAX = 4;
/** Bytes of one stream from which on it counts as moving: more than what the sockets take of a server that is gone. */
export const PROGRESS_BYTES = 16_777_216;
/** Files that a scan of a local or remote tree may be ahead of the transfers. */
export const SCAN_AHEAD_MAX = 100_000;
/** Folders below one another that a scan goes into; a path has no room for more (decision D13). */
export const FOLDER_DEPTH_MAX = 2_048;
/** Bytes that a download hands to the disk at a time. */
export const DOWNLOAD_BLOCK_BYTES: number = 1_048_576;
/** Blocks of one download that are filled or wait for the disk; when all do, the sender waits. */
export const DOWNLOAD_BLOCKS_MAX = 4;
/** Files and folders that one `put` or `get` with --delete takes away; more are a mistake of the source or the target. */
export const SURPLUS_MAX = 100_000;
/** Of those, the ones that are named before the question. */
export const SURPLUS_SHOWN_MAX = 20;
/** Failures of single files that are told one by one; the rest is counted. */
export const FAILURES_SHOWN_MAX = 50;

/** Times that one operation is tried when the server does not answer, at most. */
export const ATTEMPTS_MAX = 100;
/** Time for which an operation is tried again when the server does not answer; GROVE_RETRY_SECONDS changes it. */
export const PATIENCE_MS = 60_000;
/** Attempts where the reason is more likely a typing error than an outage. */
export const UNLIKELY_ATTEMPTS_MAX = 3;
/** Waiting time before the second attempt; each further one waits twice as long, with jitter. */
export const RETRY_FIRST_MS = 200;
/** Longest waiting time between two attempts. */
export const RETRY_LONGEST_MS = 5_000;
/** Time after which people are told again that the same thing is still tried. */
export const RETRY_NOTE_MS = 5_000;
/** Time limit of a call without a stream. */
export const CALL_TIMEOUT_MS = 60_000;
/** How long one server may take for what administrators do at all of them. */
export const ADMINISTRATION_TIMEOUT_MS = 5_000;
/** Time limit of looking up or registering, when somebody waits for a first answer. */
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
/** Names that completion offers at most. */
export const COMPLETIONS_MAX = 1_000;

/** How often the progress bar is drawn anew. */
export const PROGRESS_DRAW_MS = 100;
/** How often a plain line tells of progress where there is no terminal. */
export const PROGRESS_LINE_MS = 10_000;
/** Time over which the shown rate is taken. */
export const PROGRESS_RATE_WINDOW_MS = 5_000;

/** Symbolic links to folders that one upload follows: links to links of folders would multiply without end. */
export const LINKED_FOLDERS_MAX = 10_000;

/** How often a process looks whether another has finished what both want to do. */
export const PROCESS_LOCK_WAIT_MS = 25;
/** Looks before it goes on without waiting any more: 10 s in all. */
export const PROCESS_LOCK_TRIES = 400;
/** A lock file older than this was left behind: nothing that is done under it takes longer. */
export const PROCESS_LOCK_STALE_MS = 60_000;
