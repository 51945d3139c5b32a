// Starts Grove through ./grove, and ends all processes that a test has left running.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { metricsPortOf } from "#base/metrics-port.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { GROVE_LAUNCHER } from "#testing/grove-program.ts";

const START_WAIT_MS = 60_000;
const STOP_WAIT_MS = 20_000;
/** The developer's own settings that would change a test. */
const FOREIGN_SETTINGS = /^(?:IDP_|SVC_|ADMIN_|GROVE_|USE_IDP_|NODE_TEST|NODE_OPTIONS|DISPLAY|WAYLAND)/;

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Settings of a program that is started. */
export interface ProgramSettings {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Standard input, sent at once and ended. */
  readonly input?: string | Uint8Array;
}

/** The end of a program, with its output. */
export interface Ended {
  /** Exit code; null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program that runs. */
export interface Program {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Everything written so far to both streams. */
  output(): string;
  /**
   * Resolves with the match as soon as the output has it; rejects at the program's end, or after the wait (20
   * s by default).
   */
  says(pattern: RegExp, waitMs?: number): Promise<RegExpExecArray>;
}

/** Starts ./grove with these words. */
export function startGrove(words: readonly string[], settings: ProgramSettings = {}): Program {
  return startProgram(GROVE_LAUNCHER, words, settings);
}

/** Runs ./grove to its end. */
export function grove(words: readonly string[], settings: ProgramSettings = {}): Promise<Ended> {
  return startGrove(words, settings).ended;
}

/** The settings of the machine, but none of Grove's, and those of a program. */
export function environmentOf({ env = {} }: ProgramSettings): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !FOREIGN_SETTINGS.test(name));
  return { ...Object.fromEntries(own), TZ: "UTC", ...env };
}

/** Starts any program with the settings of the machine, but none of Grove's. */
export function startProgram(
  command: string,
  words: readonly string[],
  settings: ProgramSettings = {},
): Program {
  const child = spawn(command, words, {
    cwd: settings.cwd,
    env: environmentOf(settings),
    stdio: ["pipe", "pipe", "pipe"],
  });
  running.add(child);
  child.stdin.on("error", () => undefined);
  child.stdin.end(settings.input);
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([code]): Ended => {
    running.delete(child);
    return { code: code as number | null, stdout, stderr };
  });
  return { child, ended, output: () => stdout + stderr, says };

  async function says(pattern: RegExp, waitMs: number = START_WAIT_MS): Promise<RegExpExecArray> {
    const deadline = Date.now() + waitMs;
    for (;;) {
      const match = pattern.exec(stdout + stderr);
      if (match !== null) return match;
      if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
        throw new Error(`${words.join(" ")} did not say ${String(pattern)}:\n${stdout}${stderr}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Stops a program by SIGTERM and waits; kills it after 20 s. */
export async function stopProgram(program: Program, signal: NodeJS.Signals = "SIGTERM"): Promise<Ended> {
  program.child.kill(signal);
  const late = setTimeout(() => program.child.kill("SIGKILL"), STOP_WAIT_MS);
  try {
    return await program.ended;
  } finally {
    clearTimeout(late);
  }
}

/** Cleanups after all tests of a file, for a setup that all its tests share: the newest first. */
export class Endings {
  readonly #hooks: (() => Promise<unknown>)[] = [];

  after(hook: () => Promise<unknown>): void {
    this.#hooks.push(hook);
  }

  async end(): Promise<void> {
    for (const hook of this.#hooks.splice(0).toReversed()) await hook();
  }
}

/** The address of a FileServer. */
export interface Place {
  readonly address: string;
  readonly port: number;
  readonly metricsUrl: string;
}

/** A free port with its address. */
export async function freePlace(): Promise<Place> {
  const [port = 0] = await freeGrpcPorts(1);
  return {
    address: `127.0.0.1:${port}`,
    port,
    metricsUrl: `http://127.0.0.1:${metricsPortOf(port)}`,
  };
}

/** A FileServer without a MetaServer that serves. */
export interface StartedNode extends Place, Program {
  readonly data: string;
}

/** Settings of a FileServer. */
export interface NodeSettings {
  readonly data: string;
  readonly place?: Place;
  /** Environment; SVC_AUTH_MOCK=1 when left out. */
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
}

/**
 * Starts `grove fileserver` without a MetaServer and waits until it serves. The reserve is lowered: a test
 * machine's disk may be small.
 */
export async function startNode(settings: NodeSettings): Promise<StartedNode> {
  const place = settings.place ?? (await freePlace());
  const words = ["fileserver", "-data", settings.data, "-id", "n1", "-listen", place.address, "-reflection"];
  const program = startGrove([...words, "-reserve", "1MiB", ...(settings.flags ?? [])], {
    env: settings.env ?? { SVC_AUTH_MOCK: "1" },
  });
  await program.says(/: serves .* on /);
  return { ...program, ...place, data: settings.data };
}
