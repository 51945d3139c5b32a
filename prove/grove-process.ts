// Starts Grove's servers by the launcher, as users do, watches them through /proc, and ends them with the
// rig.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { endsWithUs } from "./ends-with-us.ts";
import { GROVE, GROVE_OF_SOURCES } from "./launcher.ts";

const START_WAIT_MS = 60_000;
const STOP_WAIT_MS = 25_000;
const LOG_TAIL_CHARACTERS = 4_000;

/** How a server is started. */
export interface GroveSettings {
  /** Flags of node itself, such as a module that is loaded first. */
  readonly nodeFlags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Hears all that it prints. */
  readonly onOutput?: (piece: string) => void;
}

/** A server that has started. */
export interface GroveProcess {
  /** Its command, such as "door". */
  readonly name: string;
  readonly pid: number;
  /** The end of what it has printed. */
  log(): string;
  /** True until it has ended. */
  isRunning(): boolean;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  /** Sends a signal and waits for the end; by force when it takes too long. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** Stops the process, or lets it go on. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
}

/** FileServers of rigs serve over as many event loops as GROVE_RIG_LOOPS says. */
function loopsOf([name]: readonly string[]): string[] {
  const loops = process.env["GROVE_RIG_LOOPS"];
  return name === "fileserver" && loops !== undefined ? ["-loops", loops] : [];
}

/**
 * Starts `grove WORDS…` in mock mode; resolves when it serves.
 * @throws Error with its output, when it does not
 */
export async function startGroveProcess(
  words: readonly string[],
  settings: GroveSettings = {},
): Promise<GroveProcess> {
  const { nodeFlags = [] } = settings;
  // A module that is loaded first may change others, which the bundle has under other names.
  const launcher = nodeFlags.length > 0 ? GROVE_OF_SOURCES : GROVE;
  const child = spawn(launcher, [...words, ...loopsOf(words)], {
    env: {
      PATH: process.env["PATH"] ?? "",
      TZ: "UTC",
      SVC_AUTH_MOCK: "1",
      NODE_OPTIONS: nodeFlags.join(" "),
      ...settings.env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  endsWithUs(child);
  let isRunning = true;
  const closed = once(child, "close").finally(() => {
    isRunning = false;
  });
  let text = "";
  const serves = Promise.withResolvers<void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (piece: string) => {
      text = (text + piece).slice(-LOG_TAIL_CHARACTERS);
      settings.onOutput?.(piece);
      if (/: serves .* on |\bserving\b/.test(text)) serves.resolve();
    });
  }
  const fail = (why: string): void => serves.reject(new Error(`grove ${words[0]} ${why}: ${text}`));
  void closed.then(() => fail("ended"));
  const late = setTimeout(() => fail("does not serve"), START_WAIT_MS);
  try {
    await serves.promise;
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    clearTimeout(late);
  }
  return {
    name: words[0] ?? "",
    pid: child.pid as number,
    log: () => text,
    isRunning: () => isRunning,
    ended: closed.then(() => undefined),
    async end(signal) {
      child.kill("SIGCONT");
      child.kill(signal);
      const force = setTimeout(() => child.kill("SIGKILL"), STOP_WAIT_MS);
      await closed;
      clearTimeout(force);
    },
    signal: (name) => void child.kill(name),
  };
}

/** What a process holds of the machine. */
export interface Footprint {
  /** Resident memory, MB. */
  readonly memoryMb: number;
  /** Where each open descriptor leads. */
  readonly handles: readonly string[];
}

/** Reads it from /proc. */
export function footprintOf(pid: number): Footprint {
  return { memoryMb: memoryMbOf(pid), handles: readdirSync(`/proc/${pid}/fd`) };
}

/** The resident memory alone, MB: a look at it costs the same however many descriptors are open. */
export function memoryMbOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kb = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0);
  return kb / 1_024;
}
