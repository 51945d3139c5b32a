// What a killed process had acknowledged, and whether the store still holds it.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { CrashLine, FileState } from "./crash-load.fixture.ts";
import { OWNER, openTestStorage, patterned, readAll } from "./store.fixture.ts";

const LOAD = fileURLToPath(new URL("./crash-load.fixture.ts", import.meta.url));

/** States in which each file may be found: the one acknowledged last, and the one that was being made. */
export class CrashManifest {
  readonly #states = new Map<string, (FileState | null)[]>();
  readonly lines: CrashLine[] = [];
  #rest = "";

  /** Takes what the process writes. */
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
    // A refused change changed nothing, one whose flush failed may be found done.
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

/** Starts a process that changes the store, behind `strace` with the given options when there are any. */
export function startLoad(
  directory: string,
  manifest: CrashManifest,
  options: { mode: "load" | "once"; firstNumber: number; strace?: readonly string[]; poolThreads?: number },
): { child: ChildProcess; exited: Promise<void> } {
  const own = [process.execPath, LOAD, directory, options.mode, String(options.firstNumber)];
  const [command = "", ...args] =
    options.strace === undefined ? own : ["strace", "-f", "-qq", ...options.strace, ...own];
  // Calls through io_uring would stay unseen, and strace counts each thread's calls by themselves.
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
