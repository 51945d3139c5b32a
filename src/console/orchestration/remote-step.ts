// What is to be run on a node.

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
  /** The step's standard output goes to the `captured` facts of the result under this name, the first 4 KiB of it without white space around, and nowhere else. */
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
