// Starts the measured programs, each in its own process, gives them tasks, and ends them.
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** Time for a process to end by itself before it is killed (nodejs/node#54918: process.exit() may hang). */
const GRACE_MS = 3_000;
/** Time for one task or one start; a benchmark that hangs must say where. */
const TASK_TIMEOUT_MS = 120_000;

/**
 * Programs that stand for a command of Grove get the settings with which the launcher starts it. The bare
 * server gets those with which it costs least.
 */
const AS_STARTED: Readonly<Record<string, readonly string[]>> = {
  "file-client": ["--max-semi-space-size=8", "--no-parallel-scavenge", "--initial-old-space-size=64"],
  "bare-files-server": ["--max-semi-space-size=2", "--no-parallel-scavenge", "--no-incremental-marking"],
  "bare-door": [
    "--min-semi-space-size=4",
    "--max-semi-space-size=4",
    "--no-parallel-scavenge",
    "--initial-old-space-size=64",
  ],
  "action-runs": ["--max-semi-space-size=8", "--no-parallel-scavenge"],
};

const EXIT_WITH_PARENT = new URL("../src/devcluster/exit-with-parent.ts", import.meta.url).href;

/** A task's input and answer. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** A running program of bench/programs that answers tasks. */
export interface Program {
  readonly pid: number;
  /** Runs one task and returns its answer. Rejects when the program fails, ends or takes over two minutes. */
  run(task: string, input?: Json): Promise<Json>;
  /** Ends the process, by force after a grace time. */
  close(): Promise<void>;
}

/** Starts bench/programs/`name`.ts. GROVE_BENCH_PROFILE=DIR in the environment adds a CPU profile. */
export function startProgram(name: string, env: Readonly<Record<string, string>> = {}): Program {
  const child = fork(fileURLToPath(new URL(`./programs/${name}.ts`, import.meta.url)), [], {
    // Standard output is the table's alone: programs print to stderr.
    stdio: ["ignore", 2, 2, "ipc"],
    execArgv: [...(AS_STARTED[name] ?? []), ...profileFlags(name)],
    env: { ...process.env, ...env },
  });
  child.on("error", () => undefined);
  let lastId = 0;
  const run = (task: string, input: Json = null): Promise<Json> => {
    lastId += 1;
    const id = lastId;
    return new Promise<Json>((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer);
        child.off("message", onMessage);
        child.off("exit", onExit);
        settle();
      };
      const onMessage = (message: unknown): void => {
        const answer = message as { id: number; result?: Json; error?: string };
        if (answer.id !== id) return;
        const { error } = answer;
        finish(() => (error === undefined ? resolve(answer.result ?? null) : reject(new Error(error))));
      };
      const onExit = (code: number | null): void =>
        finish(() => reject(new Error(`${name} ended with ${code ?? "a signal"} during ${task}`)));
      const timer = setTimeout(
        () => finish(() => reject(new Error(`${name} took too long for ${task}`))),
        TASK_TIMEOUT_MS,
      );
      child.on("message", onMessage);
      child.on("exit", onExit);
      // The exit of an ended process is reported elsewhere.
      child.send({ id, task, input }, () => undefined);
    });
  };
  return {
    pid: child.pid ?? 0,
    run,
    close: () => endProcess(child, () => child.connected && child.disconnect()),
  };
}

/** Flags that make a Node process write a CPU profile when it ends, if profiles are asked for. */
export function profileFlags(name: string): string[] {
  const folder = process.env["GROVE_BENCH_PROFILE"];

  if (folder === undefined || folder === "") return [];
  return [
    "--cpu-prof",
    "--cpu-prof-dir",
    folder,
    "--cpu-prof-name",
    `${name}-${process.pid}-${Date.now()}.cpuprofile`,
  ];
}

/** A program of Grove itself, started as operators start it. */
export interface Service {
  readonly pid: number;
  close(): Promise<void>;
}

/** Starts a command that runs until it is stopped, and waits for `isUp`. Its output goes to stderr. */
export async function startService(
  command: readonly [string, ...string[]],
  options: { env?: Readonly<Record<string, string>>; isUp: () => Promise<boolean>; isQuiet?: boolean },
): Promise<Service> {
  const [file, ...args] = command;
  const child = spawn(file, args, {
    // Over the channel it notices when the benchmark is killed, and ends too.
    stdio: ["ignore", options.isQuiet === true ? "ignore" : 2, 2, "ipc"],
    env: {
      ...process.env,
      ...options.env,
      NODE_OPTIONS: `--import ${EXIT_WITH_PARENT} ${options.env?.["NODE_OPTIONS"] ?? ""}`,
    },
  });
  child.channel?.unref();
  const close = (): Promise<void> => endProcess(child, () => child.kill("SIGTERM"));
  try {
    await waitUntilUp(child, command.join(" "), options.isUp);
  } catch (error) {
    await close();
    throw error;
  }
  return { pid: child.pid ?? 0, close };
}

async function waitUntilUp(child: ChildProcess, name: string, isUp: () => Promise<boolean>): Promise<void> {
  const failed = once(child, "error").then(([error]) => {
    throw error instanceof Error ? error : new Error(String(error));
  });
  failed.catch(() => undefined);
  for (const end = performance.now() + TASK_TIMEOUT_MS; performance.now() < end; ) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${name} ended at its start`);
    if (await Promise.race([isUp(), failed])) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${name} did not come up`);
}

async function endProcess(child: ChildProcess, ask: () => unknown): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, "exit");
  ask();
  const timer = setTimeout(() => child.kill("SIGKILL"), GRACE_MS);
  await ended;
  clearTimeout(timer);
}
