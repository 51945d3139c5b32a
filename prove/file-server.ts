// Starts a real FileServer as a process, the way users start it, and ends it as a rig asks.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { endsWithUs } from "./ends-with-us.ts";
import { compiledIn, GROVE } from "./launcher.ts";

const SPEAKS_WITHIN_MS = 30_000;
const TAIL_CHARACTERS = 4_000;
/** Settings of the developer's environment that would change what is attacked. */
const FOREIGN_SETTINGS = /^(?:IDP_|SVC_|ADMIN_|GROVE_|USE_IDP_|NODE_TEST|NODE_OPTIONS)/;

/** A process of `./grove fileserver`. */
export interface FileServerProcess {
  readonly child: ChildProcess;
  readonly address: string;
  /** Resolves once it serves; rejects with the end of its log when it ends before. */
  readonly serves: Promise<void>;
  /** Resolves with exit code or signal when it is gone. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  /** The end of what it wrote. */
  log(): string;
}

/** Finds a free address whose metrics port is free as well. */
export async function freeFileServerAddress(): Promise<string> {
  const [port] = await freeGrpcPorts(1);
  return `127.0.0.1:${port}`;
}

/** Starts one without a MetaServer, in mock mode, with a reserve of 1 MiB. */
export function startFileServer(settings: {
  readonly data: string;
  readonly address: string;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}): FileServerProcess {
  const { data, address, flags = [], env = {} } = settings;
  const own = Object.entries(process.env).filter(([name]) => !FOREIGN_SETTINGS.test(name));
  const words = ["fileserver", "-mock", "-data", data, "-id", "n1", "-listen", address, "-reserve", "1MiB"];
  const child = spawn(GROVE, [...words, ...flags], {
    env: { ...Object.fromEntries(own), TZ: "UTC", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  endsWithUs(child);
  let tail = "";
  const { promise: serves, resolve, reject } = Promise.withResolvers<void>();
  const late = setTimeout(() => reject(new Error(`it does not serve: ${tail}`)), SPEAKS_WITHIN_MS);
  const take = (text: string): void => {
    tail = (tail + text).slice(-TAIL_CHARACTERS);
  };
  child.stderr.setEncoding("utf8").on("data", take);
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    take(text);
    if (text.includes(": serves ")) resolve();
  });
  const ended = once(child, "close").then(([code, signal]) => {
    clearTimeout(late);
    reject(new Error(`it ended with ${String(code ?? signal)}: ${tail}`));
    return (code ?? signal) as number | NodeJS.Signals | null;
  });
  serves.then(
    () => clearTimeout(late),
    () => undefined,
  );
  return { child, address, serves, ended, log: () => tail };
}

/**
 * Has a server compile its sources into a cache folder and ends it in good order, since a killed process does
 * not write the cache.
 * @returns the environment that lets others start from there, in half the time
 */
export async function withCompiled(
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Readonly<Record<string, string>>> {
  const compiled = { ...env, NODE_COMPILE_CACHE: compiledIn(join(folder, "compiled")) };
  const address = await freeFileServerAddress();
  const server = startFileServer({ data: join(folder, "compiling"), address, env: compiled });
  await server.serves;
  server.child.kill("SIGTERM");
  await server.ended;
  return compiled;
}
