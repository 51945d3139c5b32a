// Three machines for a walk: network namespaces where this machine may have them, else addresses of the loopback.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { type Ended, type Program, type ProgramSettings, startProgram } from "#e2e/processes.ts";
import { GROVE_LAUNCHER } from "#testing/grove-program.ts";
import { diskFolder, scratchFolder } from "#testing/scratch-folder.ts";

/** One machine of a walk. */
export interface WalkMachine {
  /** The name by which the others reach it. */
  readonly name: string;
  readonly address: string;
  /** All that it has on its disk. */
  readonly folder: string;
  /** Runs `grove` there to its end. */
  grove(words: readonly string[], settings?: ProgramSettings): Promise<Ended>;
  /** Starts any program there. */
  start(command: string, words: readonly string[], settings?: ProgramSettings): Program;
  /** Starts the command of a unit that `grove init -below` has written there, with its variables. */
  startUnit(service: string): Program;
}

/** The machines, with the address at which all of them reach this test's own servers. */
export interface Walk {
  readonly machines: readonly WalkMachine[];
  /** True with namespaces; false on the loopback, where each machine listens on its own address alone. */
  readonly isApart: boolean;
  readonly ownAddress: string;
  /** Takes the namespaces away, once all that was started there has ended. */
  end(): void;
}

const NAMES = ["n1", "n2", "n3"] as const;

/** Makes three machines. */
export function startWalk(): Walk {
  return apart() ?? onLoopback();
}

/** Namespaces on a bridge of their own; undefined where root or the kernel does not allow them. */
function apart(): Walk | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const tag = `gw${process.pid % 100_000}`;
  // A /24 by the process, so that two walks on one machine do not meet.
  const net = `10.${200 + (process.pid % 50)}.${(process.pid >> 6) % 250}`;
  const undo: string[][] = [];
  const ip = (...words: string[]): boolean => spawnSync("ip", words, { stdio: "ignore" }).status === 0;
  const make = (words: string[], back: string[]): boolean => {
    if (!ip(...words)) return false;
    undo.unshift(back);
    return true;
  };
  const hosts = NAMES.map((id, at) => `${net}.${at + 1} ${id}.grove.test`);
  const folders: string[] = [];
  const end = (): void => {
    for (const words of undo) ip(...words);
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  };
  const bridge = `${tag}b`;
  let isMade =
    make(["link", "add", bridge, "type", "bridge"], ["link", "del", bridge]) &&
    ip("addr", "add", `${net}.254/24`, "dev", bridge) &&
    ip("link", "set", bridge, "up");
  const machines = NAMES.map((id, at) => {
    const space = `${tag}${id}`;
    const settings = `/etc/netns/${space}`;
    isMade &&= make(["netns", "add", space], ["netns", "del", space]);
    isMade &&= ip("link", "add", `${space}o`, "type", "veth", "peer", "name", "eth0", "netns", space);
    isMade &&= ip("link", "set", `${space}o`, "master", bridge, "up");
    isMade &&= ip("-n", space, "addr", "add", `${net}.${at + 1}/24`, "dev", "eth0");
    isMade &&= ip("-n", space, "link", "set", "eth0", "up") && ip("-n", space, "link", "set", "lo", "up");
    if (isMade) {
      folders.push(settings);
      mkdirSync(settings, { recursive: true });
      writeFileSync(join(settings, "hosts"), `${["127.0.0.1 localhost", ...hosts].join("\n")}\n`);
    }
    const place = { name: `${id}.grove.test`, address: `${net}.${at + 1}` };
    return machine(place, ["ip", "netns", "exec", space]);
  });
  if (isMade) return { machines, isApart: true, ownAddress: `${net}.254`, end };
  end();
  return undefined;
}

/** Addresses of the loopback by the process. */
function onLoopback(): Walk {
  const net = `127.${1 + (process.pid % 250)}.${(process.pid >> 8) % 250}`;
  const machines = NAMES.map((_id, at) => {
    const address = `${net}.${at + 1}`;
    return machine({ name: address, address }, []);
  });
  return { machines, isApart: false, ownAddress: "127.0.0.1", end: () => undefined };
}

function machine(place: Pick<WalkMachine, "name" | "address">, prefix: readonly string[]): WalkMachine {
  const folder = scratchFolder("grove-walk-", diskFolder());
  const start: WalkMachine["start"] = (command, words, settings = {}) => {
    const [first = "", ...rest] = [...prefix, command, ...words];
    const env = { XDG_CONFIG_HOME: join(folder, "config"), XDG_CACHE_HOME: join(folder, "cache") };
    return startProgram(first, rest, { cwd: folder, ...settings, env: { ...env, ...settings.env } });
  };
  return {
    ...place,
    folder,
    start,
    grove: (words, settings) => start(GROVE_LAUNCHER, words, settings).ended,
    startUnit(service) {
      const unit = readFileSync(join(folder, "units", `svc-${service}.service`), "utf8");
      const settings = /^EnvironmentFile=-(.+)$/m.exec(unit)?.[1] ?? "";
      const { SVC_FLAGS = "", ...env } = parseEnv(readFileSync(settings, "utf8")) as Record<string, string>;
      const line = (/^ExecStart=(.+)$/m.exec(unit)?.[1] ?? "").split(" ");
      const [command = "", ...words] = line.flatMap((word) =>
        word === "$SVC_FLAGS" ? SVC_FLAGS.split(" ").filter((flag) => flag !== "") : [word],
      );
      return start(command, words, { env });
    },
  };
}
