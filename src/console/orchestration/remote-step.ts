// The steps of an action on a node.

/** One program on a node. The steps of an action run one after the other, up to the first failure. */
export type RemoteStep = RunStep | DaemonStep;

/** A program that ends. */
export interface RunStep {
  readonly kind?: "run";
  /** The program and its arguments, never parsed by a shell. A shell line is `["sh", "-c", line]`. */
  readonly argv: readonly string[];
  /** Working folder: an absolute path, or one below the user's home folder, which is the default. */
  readonly cwd?: string;
  /** Added to the clean environment (HOME, PATH, USER, LOGNAME, LANG). */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Name of the captured fact for the step's standard output: its first 4 KiB, trimmed, instead of the
   * action's output.
   */
  readonly capture?: string;
  /** Its failure is ignored. */
  readonly isOptional?: boolean;
}

/**
 * A daemon: ends the process of the pid file and starts a new one in its own session (restart mode `binary`).
 */
export interface DaemonStep {
  readonly kind: "daemon";
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** An absolute path, or one below the step's `cwd`; the same holds for the log file. */
  readonly pidFile: string;
  /** Standard output and error are appended to it; without one they are discarded. */
  readonly logFile?: string;
}
