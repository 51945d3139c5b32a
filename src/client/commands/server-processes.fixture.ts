// Starts real FileServer and MetaServer processes in mock mode, and the program through its launcher.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { GROVE_LAUNCHER } from "#testing/grove-program.ts";

/** How long a server may take to answer, and a caller to wait for it. */
export const START_TIMEOUT_MS = 30_000;
/** How long a server may take to stop. */
const STOP_TIMEOUT_MS = 20_000;

/** One server process. */
export interface ServerProcess {
  readonly address: string;
  readonly child: ChildProcess;
  /** Its output, for a failing test. */
  log(): string;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** Starts `grove VERB …` as a server in mock mode, and waits until its port answers. */
export async function startServer(
  words: readonly string[],
  port: number,
  env: Record<string, string> = {},
): Promise<ServerProcess> {
  const child = spawn(GROVE_LAUNCHER, words, {
    env: { ...process.env, SVC_AUTH_MOCK: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (piece: Buffer) => {
      text += piece.toString();
    });
  }
  const server: ServerProcess = {
    address: `127.0.0.1:${port}`,
    child,
    log: () => text,
    async kill(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill(signal);
      // A server that ignores the signal must not block the tests.
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      await ended;
      clearTimeout(timer);
    },
  };
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`grove ${words[0]} ended: ${text}`);
    if (performance.now() > deadline) throw new Error(`grove ${words[0]} does not answer: ${text}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return server;
}

/** Starts a FileServer on the given data folder. */
export function startFileServer(
  folder: string,
  port: number,
  words: readonly string[] = [],
): Promise<ServerProcess> {
  const listen = `127.0.0.1:${port}`;
  const id = `n${port}`;
  return startServer(
    [
      "fileserver",
      "--data",
      join(folder, "node"),
      "--id",
      id,
      "--listen",
      listen,
      "--reserve",
      "1MiB",
      ...words,
    ],
    port,
    { ADMIN_PASSWORD: "correct horse", SVC_ADMIN_EMAIL: "admin@example.com" },
  );
}

async function answers(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1");
  socket.once("connect", () => resolve(true));
  socket.once("error", () => resolve(false));
  const answered = await promise;
  socket.destroy();
  return answered;
}

/** Starts the program by its launcher: `./grove WORDS` with the given settings. */
export function spawnGrove(words: readonly string[], env: Record<string, string>): ChildProcess {
  return spawn(GROVE_LAUNCHER, words, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
}

/** Runs the program to its end. */
export async function runGrove(
  words: readonly string[],
  env: Record<string, string>,
  stdin = "",
): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawnGrove(words, env);
  let out = "";
  let err = "";
  child.stdout?.on("data", (piece: Buffer) => {
    out += piece.toString();
  });
  child.stderr?.on("data", (piece: Buffer) => {
    err += piece.toString();
  });
  child.stdin?.end(stdin);
  await once(child, "close");
  return { code: child.exitCode, out, err };
}
