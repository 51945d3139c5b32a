// Finds the process that listens on a port of this machine, if the system shows it.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** A process that listens on a port. */
export interface PortOwner {
  readonly pid: number;
  readonly name: string;
}

/** State LISTEN in /proc/net/tcp. */
const LISTEN = "0A";

/** The process that listens on a TCP port, from /proc; undefined where /proc does not show it. */
export function findPortOwner(port: number, proc = "/proc"): PortOwner | undefined {
  const sockets = new Set([...listeners(`${proc}/net/tcp`, port), ...listeners(`${proc}/net/tcp6`, port)]);
  if (sockets.size === 0) return undefined;
  for (const pid of names(proc)) {
    if (!/^\d+$/.test(pid)) continue;
    for (const descriptor of names(`${proc}/${pid}/fd`)) {
      const target = read(() => readlinkSync(`${proc}/${pid}/fd/${descriptor}`));
      if (target !== undefined && sockets.has(target)) {
        return {
          pid: Number(pid),
          name: read(() => readFileSync(`${proc}/${pid}/comm`, "utf8").trim()) ?? "?",
        };
      }
    }
  }
  return undefined;
}

/** The listening sockets of a port, as links in /proc/PID/fd name them. */
function listeners(table: string, port: number): string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, "0");
  const rows =
    read(() => readFileSync(table, "utf8"))
      ?.split("\n")
      .slice(1) ?? [];
  return rows.flatMap((row) => {
    const fields = row.trim().split(/\s+/);
    const isWanted = fields[1]?.endsWith(`:${wanted}`) === true && fields[3] === LISTEN;
    return isWanted ? [`socket:[${fields[9]}]`] : [];
  });
}

function names(path: string): string[] {
  return read(() => readdirSync(path)) ?? [];
}

/** Reads or returns undefined: processes end meanwhile, and those of other users are unreadable. */
function read<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
