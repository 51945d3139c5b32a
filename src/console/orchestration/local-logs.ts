// Log files on the console's machine: only those that -local_log names (spec 4.1, decision D10).
import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { LOG_LINES_MIN } from "#base/limits.ts";
import { checkedNodeId } from "#base/node-id.ts";
import { SERVICES, type Service } from "#wire/webapi/action-request.ts";
import type { LogLine } from "#wire/webapi/log-tail.ts";
import { LogLines } from "./log-lines.ts";
import { OutputMask } from "./output-mask.ts";

/** Text of the last lines of a log (decision D10): 1 MiB. */
export const LOG_TAIL_MAX_BYTES = 1_048_576;
/** Longest time that one request follows a log. */
export const LOG_FOLLOW_MAX_MS = 3_600_000;
/** Log files of the console's own machine that -local_log may name. */
export const LOCAL_LOG_FILES_MAX = 300;
/** Poll interval of a followed file. */
export const LOCAL_LOG_POLL_MS = 500;

/** One readable file, as `-local_log` names it. */
export interface LocalLog {
  readonly nodeId: string;
  readonly service: Service;
  /** Absolute. */
  readonly path: string;
}

/** Reads `n1/fileserver=/var/log/grove/n1.log`. Throws BAD_ARGUMENT. */
export function parseLocalLog(text: string): LocalLog {
  const [, nodeId = "", name = "", path = ""] =
    /^([^/=]*)\/([^/=]*)=(\/[^\u0000-\u001f\u007f]*)$/.exec(text) ?? [];
  const service = SERVICES.find((each) => each === name);
  if (service === undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `a log of this machine is NODE/SERVICE=FILE, such as n1/fileserver=/var/log/grove/n1.log; a service is one of ${SERVICES.join(", ")}`,
    );
  }
  return { nodeId: checkedNodeId(nodeId), service, path };
}

/** Dependencies of the reader. */
export interface LocalLogsDeps {
  readonly clock: Clock;
  /** At most LOCAL_LOG_FILES_MAX. */
  readonly files: readonly LocalLog[];
  /** Values that lines mask. */
  readonly secrets: () => readonly string[];
}

/** The logs of this machine. Node and service select a file; nothing of a request becomes a path. */
export class LocalLogs {
  readonly #deps: LocalLogsDeps;
  readonly #paths = new Map<string, string>();

  /** Throws BAD_ARGUMENT for too many files. */
  constructor(deps: LocalLogsDeps) {
    this.#deps = deps;
    if (deps.files.length > LOCAL_LOG_FILES_MAX)
      throw new GroveError("BAD_ARGUMENT", `-local_log names at most ${LOCAL_LOG_FILES_MAX} files`);
    for (const { nodeId, service, path } of deps.files) this.#paths.set(`${nodeId}/${service}`, path);
  }

  /** True when a service on a node has a file. */
  has(nodeId: string, service: Service): boolean {
    return this.#paths.has(`${nodeId}/${service}`);
  }

  /**
   * The last lines of a file, from its last mebibyte. Rejects with the system's error, or STORAGE_FAILED for
   * a non-file.
   */
  async tail(
    nodeId: string,
    service: Service,
    lines: number,
  ): Promise<{ readonly lines: LogLine[]; readonly truncated: boolean }> {
    const { lines: found, isCut } = await this.#end(this.#pathOf(nodeId, service), lines);
    return { lines: found, truncated: isCut };
  }

  /**
   * Sends the last ten lines and then new ones until the returned function is called, for at most an hour. A
   * replaced or truncated file is read from its start. `onEnd` is called once, with a sentence unless the
   * caller ended it.
   */
  follow(
    nodeId: string,
    service: Service,
    to: {
      readonly onLines: (lines: readonly LogLine[]) => void;
      readonly onEnd: (why: string | undefined) => void;
    },
  ): () => void {
    const path = this.#pathOf(nodeId, service);
    const { clock } = this.#deps;
    let [at, inode, isBusy, isOver] = [0, 0, false, false];
    const cutter = new LogLines("file");
    const mask = new OutputMask(this.#deps.secrets());
    const end = (why: string | undefined): void => {
      if (isOver) return;
      isOver = true;
      for (const cancel of cancels) cancel();
      to.onEnd(why);
    };
    const look = async (): Promise<void> => {
      if (isBusy || isOver) return;
      isBusy = true;
      try {
        const { size, ino } = await stat(path);
        if (ino !== inode || size < at) [at, inode] = [0, ino];
        const bytes = await readFrom(path, at, Math.min(size - at, LOG_TAIL_MAX_BYTES));
        at += bytes.length;
        const found = cutter.push(mask.push(bytes));
        if (found.length > 0 && !isOver) to.onLines(found);
      } catch (error) {
        // A rotation leaves a moment without a file.
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") end(problemOf(error));
      } finally {
        isBusy = false;
      }
    };
    const cancels = [
      clock.every(LOCAL_LOG_POLL_MS, () => void look()),
      clock.after(LOG_FOLLOW_MAX_MS, () => end("an hour has passed")),
    ];
    isBusy = true;
    this.#end(path, LOG_LINES_MIN).then(
      (found) => {
        [at, inode, isBusy] = [found.size, found.inode, false];
        if (found.lines.length > 0 && !isOver) to.onLines(found.lines);
      },
      (error: unknown) => end(problemOf(error)),
    );
    return () => end(undefined);
  }

  #pathOf(nodeId: string, service: Service): string {
    const path = this.#paths.get(`${nodeId}/${service}`);
    if (path === undefined) throw new TypeError("no file is named for this");
    return path;
  }

  async #end(
    path: string,
    wanted: number,
  ): Promise<{ lines: LogLine[]; isCut: boolean; size: number; inode: number }> {
    const file = await openFile(path);
    try {
      const { size, ino } = await file.stat();
      const from = Math.max(0, size - LOG_TAIL_MAX_BYTES);
      const bytes = await bytesOf(file, from, size - from);
      const cutter = new LogLines("file");
      const mask = new OutputMask(this.#deps.secrets());
      const all = [...cutter.push(mask.push(bytes)), ...cutter.push(mask.end()), ...cutter.end()];
      // The text before the first newline is the rest of a longer line.
      const whole = from === 0 ? all : all.slice(1);
      return {
        lines: whole.slice(-wanted),
        isCut: from > 0 && whole.length < wanted,
        size: from + bytes.length,
        inode: ino,
      };
    } finally {
      await file.close();
    }
  }
}

/** A sentence about an unreadable file; it names the path, which operators chose. */
export function problemOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? "unknown";
  if (code === "ENOENT") return "the log file that -local_log names is not there";
  if (code === "EACCES") return "the console may not read the log file that -local_log names";
  return `the log file that -local_log names cannot be read (${code})`;
}

/** Opens regular files only, and does not block on a pipe without a writer. */
async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new GroveError("STORAGE_FAILED", "a log is a file");
}

async function readFrom(path: string, at: number, length: number): Promise<Buffer> {
  if (length <= 0) return Buffer.alloc(0);
  const file = await openFile(path);
  try {
    return await bytesOf(file, at, length);
  } finally {
    await file.close();
  }
}

async function bytesOf(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at);
  return buffer.subarray(0, bytesRead);
}
