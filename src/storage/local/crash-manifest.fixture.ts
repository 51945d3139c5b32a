// Records what a killed process had acknowledged, and compares the store with it.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { CrashLine, FileState } from "./crash-load.fixture.ts";
import { OWNER, openTestStorage, patterned, readAll } from "./store.fixture.ts";

const LOAD = fileURLToPath(new URL("./crash-load.fixture.ts", import.meta.url));

/** Allowed states of each file: the last acknowledged one, and the one in progress. */
export class CrashManifest {
  readonly #states = new Map<string, (FileState | null)[]>();
  readonly lines: CrashLine[] = [];
  #rest = "";

  /** Parses the output of the process. */
  read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#take(JSON.parse(line) as CrashLine);
  }

  get acknowledged(): number {
    return this.lines.filter(({ event }) => event === "done").length;
  }

  #take(line: CrashLine): void {
    this.lines.push(line);
    const { event, file, state } = line;
    const before = this.#states.get(file) ?? [null];
    if (event === "begin") this.#states.set(file, [...before, state]);
    // A refused change leaves the old state; one whose flush failed may be found done.
    else if (event === "done") this.#states.set(file, [state]);
  }

  /** Opens the store and compares; afterwards each file's state is known again. */
  async verify(directory: string): Promise<void> {
    const storage = await openTestStorage(directory);
    try {
      const root = storage.root(OWNER);
      if (root === undefined) {
        assert.equal(this.acknowledged, 0);
        return;
      }
      const entries = new Map(
        storage
          .list(root.directoryId, { limit: 1_000, pageToken: "", sort: "name" })
          .entries.map((entry) => [entry.name, entry]),
      );
      for (const [file, allowed] of this.#states) {
        if (file === "failure" || file === "") continue;
        const found: (FileState | null)[] = [];
        for (const state of allowed) {
          const entry = state === null ? undefined : entries.get(state.name);
          if (state === null || entry === undefined) {
            if (state === null && !entries.has(file) && !entries.has(file.replace("f", "r")))
              found.push(null);
          } else if (entry.kind === "directory") found.push(state);
          else if ((await readAll(storage, entry.id)).equals(patterned(state.size, state.seed)))
            found.push(state);
        }
        const state = found.at(-1);
        assert.ok(state !== undefined, `${file} is in none of its states: ${JSON.stringify(allowed)}`);
        this.#states.set(file, [state]);
      }
    } finally {
      await storage.close();
    }
  }
}

/**
 * Starts a process that changes the store, behind `strace` when options are given. It stops only at calls
 * that these name.
 */
export function startLoad(
  directory: string,
  manifest: CrashManifest,
  options: { mode: "load" | "once"; firstNumber: number; strace?: readonly string[]; poolThreads?: number },
): { child: ChildProcess; exited: Promise<void> } {
  const own = [process.execPath, LOAD, directory, options.mode, String(options.firstNumber)];
  const [command = "", ...args] =
    options.strace === undefined ? own : ["strace", "-f", "--seccomp-bpf", "-qq", ...options.strace, ...own];
  // strace would not see calls through io_uring, and it counts the calls of each thread separately.
  const env = {
    ...process.env,
    UV_USE_IO_URING: "0",
    UV_THREADPOOL_SIZE: String(options.poolThreads ?? (options.strace === undefined ? 4 : 1)),
  };
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env });
  child.stdout.setEncoding("utf8").on("data", (text: string) => manifest.read(text));
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const exited = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0 || signal === "SIGKILL" || code === 137) resolve();
      else reject(new Error(`the process ended with ${code ?? signal ?? ""}: ${errors}`));
    });
  });
  return { child, exited };
}
