// Starts servers through ./grove as operators do, and keeps all their output to be searched.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { GROVE } from "#prove/launcher.ts";

const SERVES_WITHIN_MS = 60_000;
const RAISED = 'ulimit -c unlimited 2>/dev/null; exec "$0" "$@"';

/** One server. */
export interface WatchedServer {
  readonly name: string;
  readonly pid: number;
  /** All its output. */
  output(): string;
  /** Kills it, and waits. */
  crash(): Promise<void>;
  kill(): void;
}

/** Starts a server and waits until it serves. */
export async function startWatched(
  name: string,
  words: readonly string[],
  settings: { readonly env: Readonly<Record<string, string>>; readonly folder: string },
): Promise<WatchedServer> {
  // As on a machine that keeps core dumps: the launcher must turn them off.
  const child: ChildProcess = spawn("/bin/sh", ["-c", RAISED, GROVE, ...words], {
    cwd: settings.folder,
    env: { PATH: process.env["PATH"] ?? "", TZ: "UTC", ...settings.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const ended = once(child, "close");
  const deadlineMs = performance.now() + SERVES_WITHIN_MS;
  while (!/: serves .* on |\bserving\b|console is on/.test(output)) {
    if (child.exitCode !== null || performance.now() > deadlineMs)
      throw new Error(`${name} does not serve: ${output}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    name,
    pid: child.pid as number,
    output: () => output,
    async crash() {
      child.kill("SIGABRT");
      await ended;
    },
    kill: () => void child.kill("SIGKILL"),
  };
}

/** Returns the command lines of a process and its children, and the children's environments. */
export async function processTexts(pid: number): Promise<string> {
  const own = await readProc(pid, "cmdline");
  const below = (await readProc(pid, `task/${pid}/children`)).split(/\s+/).filter(Boolean);
  const texts = await Promise.all(
    below.map(
      async (child) => (await processTexts(Number(child))) + (await readProc(Number(child), "environ")),
    ),
  );
  return own + texts.join("\n");
}

/** The process's limit for core dumps in bytes; "unlimited" without one. */
export async function coreLimit(pid: number): Promise<string> {
  return /^Max core file size\s+(\S+)/m.exec(await readProc(pid, "limits"))?.[1] ?? "unknown";
}

function readProc(pid: number, name: string): Promise<string> {
  // It may have ended meanwhile.
  return readFile(`/proc/${pid}/${name}`, "latin1").catch(() => "");
}
