// One action on one node: what is to be run there, and what became of it.

/** One program to be run on a node. The steps of an action run one after the other, up to the first that fails. */
export type RemoteStep = RunStep | DaemonStep;

/** A program that ends. */
export interface RunStep {
  readonly kind?: "run";
  /** The program and its arguments; none of them is ever seen by a shell. A shell line is `["sh", "-c", line]`. */
  readonly argv: readonly string[];
  /** The folder in which it runs: an absolute path, or one below the home folder of the user. Default: the home folder. */
  readonly cwd?: string;
  /** Added to the clean environment (HOME, PATH, USER, LOGNAME, LANG). */
  readonly env?: Readonly<Record<string, string>>;
  /** The step's standard output goes to `TargetResult.captured` under this name, the first 4 KiB of it without white space around, and nowhere else. */
  readonly capture?: string;
  /** Its failure does not stop the steps that follow, nor does it count. */
  readonly isOptional?: boolean;
}

/** A program that stays: the one whose pid the file holds is ended, the new one is started, with a session of its own (restart mode `binary`). */
export interface DaemonStep {
  readonly kind: "daemon";
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** An absolute path, or one below the step's `cwd`; the same holds for the log file. */
  readonly pidFile: string;
  /** Standard output and error are appended to it; without one they are dropped. */
  readonly logFile?: string;
}

/** What became of an action on one node. `unknown`: it could not be learned whether it still runs, or how it ended. */
export type TargetState = "succeeded" | "failed" | "unreachable" | "timed_out" | "cancelled" | "unknown";

/** Why a node could not be reached, or what is not known of it. */
export type TargetReason =
  | "HOST_KEY_CHANGED"
  | "KEY_FILE_UNSAFE"
  | "KEY_REFUSED"
  | "CONNECT_FAILED"
  | "CONNECTION_LOST"
  | "NOT_STARTED"
  | "PROCESSES_LEFT"
  | "NO_NEW_BOOT"
  | "NOT_HEALTHY";

/** How one action ended on one node. */
export interface TargetResult {
  readonly state: TargetState;
  /** Of the step that failed, or of the last one; null when nobody knows, or nothing ran. */
  readonly exitCode: number | null;
  /** The signal that such an exit code of a shell means, as `SIGTERM`. */
  readonly signal?: string;
  /** Index of the step that failed. */
  readonly failedStep?: number;
  /** What the steps with `capture` said. */
  readonly captured: Readonly<Record<string, string>>;
  readonly bootIdBefore?: string;
  readonly bootIdAfter?: string;
  readonly reason?: TargetReason;
  /** A sentence for people; holds no secret. */
  readonly message?: string;
  /** With HOST_KEY_CHANGED: `SHA256:…` of the key that was pinned, and of the one that was shown where that is known. */
  readonly hostKeys?: { readonly pinned: string; readonly shown?: string };
  /** True when the connection was lost, so that the end of the output may be missing. */
  readonly isOutputCut: boolean;
}

/** How an action is to be run on a node. */
export interface TargetRunOptions {
  readonly actionId: string;
  /** Whole time, connecting included; then the node's processes are ended. */
  readonly timeoutMs: number;
  /** Cancels: TERM, ten seconds, KILL, and a look whether any is left. */
  readonly signal?: AbortSignal;
  /** Output as it comes, with the configured secrets masked. While a promise is pending no more is read, and the node's program waits. */
  readonly onOutput: (stream: "stdout" | "stderr", bytes: Buffer) => void | Promise<void>;
  /** The steps restart the host: a lost connection is expected, and only a new boot id together with health is success. */
  readonly expectsReboot?: { readonly isHealthy: (signal: AbortSignal) => Promise<boolean> };
}
