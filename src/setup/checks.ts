// Checks of answers against this machine and its network: names, ports, folders, databases, MetaServers.
import { lookup } from "node:dns/promises";
import { existsSync } from "node:fs";
import { readFile, statfs } from "node:fs/promises";
import { connect, isIP } from "node:net";
import { dirname, join } from "node:path";
import { formatBytes } from "#base/bytes.ts";
import { GroveError } from "#base/errors.ts";
import {
  CONSOLE_PORT,
  DISK_RESERVE_BYTES,
  DOOR_METRICS_PORT,
  DOOR_PORT,
  FILESERVER_PORT,
  METASERVER_PORT,
} from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import { metricsPortOf } from "#base/metrics-port.ts";
import { isLoopbackAddress } from "#base/network.ts";
import { formatHostPort, parseHostPort } from "#base/node-id.ts";
import { PostgresConnections } from "#metaserver/directory/postgres-connections.ts";
import { storeUrl } from "#metaserver/directory/store-url.ts";
import { isPortFree } from "#os/listen-ports.ts";
import { isPostgresUrl, parsePostgresUrl } from "#os/postgres-url.ts";
import type { Role } from "./answers.ts";
import { ownAddresses } from "./networks.ts";

/** Time for a machine to take a connection. */
const CONNECT_TIMEOUT_MS = 5_000;
/** Free space above the reserve that a new node has at least. */
const ROOM_MIN_BYTES = 1n << 30n;

/** Filesystems by the number that statfs gives, and why no data may lie there. */
const UNFIT: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS, where locks and flushes do not hold what Grove promises"],
  [0xff534d42, "CIFS, where locks and flushes do not hold what Grove promises"],
  [0xfe534d42, "SMB, where locks and flushes do not hold what Grove promises"],
  [0x01021994, "tmpfs, whose files are lost at the next restart"],
  [0x858458f6, "ramfs, whose files are lost at the next restart"],
  [0x794c7630, "an overlay, which containers throw away; mount a disk there"],
  [0x65735546, "FUSE, of which Grove does not know whether a flush reaches a disk"],
]);

/** The refusal of an answer. */
export function refused(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}

/** True for a name or address that only this machine reaches. */
export function isOnlyHere(host: string): boolean {
  return host === "localhost" || isLoopbackAddress(host);
}

/** The addresses of a name; throws BAD_ARGUMENT where it has none. */
export async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch {
    throw refused(
      `${host} does not resolve on this machine: give the name an address in DNS or in /etc/hosts`,
    );
  }
}

/** A remark where none of the addresses is one of this machine's. */
export function remarkOnOwn(host: string, addresses: readonly string[]): string[] {
  const isOwn = addresses.some((address) => isLoopbackAddress(address) || ownAddresses().has(address));
  return isOwn
    ? []
    : [`${host} has no address of this machine; that is right only where a router passes its ports on`];
}

/** The ports of a role: those of its services and of its metrics. */
function portsOf(role: Role, listen: string): { readonly host: string; readonly port: number }[] {
  const host = listen === "" ? "0.0.0.0" : listen;
  const grpc = (port: number): { readonly host: string; readonly port: number }[] => [
    { host, port },
    { host, port: metricsPortOf(port) },
  ];
  if (role === "metaserver") return grpc(METASERVER_PORT);
  if (role === "fileserver") return grpc(FILESERVER_PORT);
  if (role === "console") return [{ host, port: CONSOLE_PORT }];
  return [
    { host, port: DOOR_PORT },
    { host: "127.0.0.1", port: DOOR_METRICS_PORT },
  ];
}

/** Throws BAD_ARGUMENT for the first port of these roles that another process has. */
export async function requireFreePorts(roles: readonly Role[], listen: string): Promise<void> {
  for (const role of roles) {
    for (const { host, port } of portsOf(role, listen)) {
      if (await isPortFree(port, host)) continue;
      throw refused(
        `port ${port}, which the ${role} needs, is taken by another process ('ss -ltnp' says by which)`,
      );
    }
  }
}

/** Checks that something takes connections there. */
export async function requireReachable(address: string): Promise<void> {
  const { host, port } = parseHostPort(address);
  await addressesOf(host);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host, port, timeout: CONNECT_TIMEOUT_MS });
  socket.once("connect", () => resolve());
  socket.once("timeout", () => reject(new Error("no answer")));
  socket.once("error", reject);
  try {
    await promise;
  } catch (error) {
    throw refused(
      `${formatHostPort({ host, port })} cannot be reached (${errorText(error)}): is svc-metaserver running there, and does a firewall let port ${port} through?`,
    );
  } finally {
    socket.destroy();
  }
}

/** What a folder for data is held to. */
export interface FolderNeeds {
  readonly reserveBytes: bigint;
  /** True where the FileServer keeps its files there. */
  readonly keepsFiles: boolean;
  /** True for the machine itself, whose units see neither homes nor temporary files. */
  readonly isSystem: boolean;
}

/** Checks a folder's path, filesystem and room; returns remarks. */
export async function checkFolder(folder: string, needs: FolderNeeds): Promise<string[]> {
  if (!/^\/[\w./-]+$/.test(folder) || folder.includes("..")) {
    throw refused("a folder is an absolute path of letters, digits and - _ . /");
  }
  if (needs.isSystem && /^\/(?:home|root|tmp|var\/tmp|run)(?:\/|$)/.test(folder)) {
    throw refused(`the services cannot see ${folder}: take a folder such as /var/lib/grove or /srv/grove`);
  }
  let there = folder;
  while (!existsSync(there)) there = dirname(there);
  const { type, bavail, bsize } = await statfs(there, { bigint: true });
  const why = UNFIT.get(Number(BigInt.asUintN(32, type)));
  if (why !== undefined) throw refused(`${folder} would lie on ${why}`);
  if (!needs.keepsFiles) return [];
  const freeBytes = bavail * bsize;
  if (freeBytes < needs.reserveBytes + ROOM_MIN_BYTES) {
    throw refused(
      `${folder} has ${formatBytes(freeBytes)} free, and Grove leaves ${formatBytes(needs.reserveBytes)} of every disk free: ` +
        "nothing could be stored. Take a larger disk, or for a trial the answer 'reserve = 1GiB'",
    );
  }
  const unusual =
    needs.reserveBytes === DISK_RESERVE_BYTES
      ? []
      : [`the reserve is ${formatBytes(needs.reserveBytes)}, not 20 GiB: for trials`];
  return [`${formatBytes(freeBytes - needs.reserveBytes)} can be stored there`, ...unusual];
}

/** Files by role that there is once: an authority, store or node made in their place is another one. */
const ONCE: Readonly<Partial<Record<Role, readonly string[]>>> = {
  metaserver: ["ca/ca.key", "metaserver/cluster_id"],
  fileserver: ["fileserver/node.json", "fileserver/identity.json"],
};

/** Throws BAD_ARGUMENT where the roles' data lies in the folder of the run before, and not in this one. */
export function requireMoved(before: string | undefined, folder: string, roles: readonly Role[]): void {
  if (before === undefined || before === folder) return;
  const once = roles.flatMap((role) => ONCE[role] ?? []);
  const left = once.find((file) => existsSync(join(before, file)) && !existsSync(join(folder, file)));
  if (left === undefined) return;
  throw refused(
    `the data lies in ${before}, and ${join(folder, left)} is not there: a cluster without its old files would begin. ` +
      `Stop the services, move it ('mv ${before} ${folder}'), then say the new folder`,
  );
}

/** Checks the metadata store: this machine's own file, or a database that answers. */
export async function checkStore(store: string): Promise<void> {
  if (store === "sqlite") return;
  const url = await storeUrl(store.startsWith("/") ? { metaFile: store } : { meta: store });
  if (url === undefined || !isPostgresUrl(url)) {
    throw refused("the store is sqlite, postgres://USER@HOST/DATABASE, or the path of a file with that URL");
  }
  const settings = parsePostgresUrl(url, process.env);
  const connections = new PostgresConnections({ settings, max: 1, prepare: async () => undefined });
  try {
    (await connections.acquire(CONNECT_TIMEOUT_MS)).release(false);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    throw refused(`the database does not answer: ${errorText(cause ?? error)}`);
  } finally {
    await connections.close();
  }
}

/** The files that a door has where the authority is on another machine. */
export const DOOR_FILES = ["door.crt", "door.key", "ca.crt"] as const;

/** Checks that a folder has a door's certificate, key and authority. */
export async function checkDoorFiles(folder: string): Promise<void> {
  for (const name of DOOR_FILES) {
    const text = await readFile(join(folder, name), "utf8").catch(() => "");
    if (!text.includes("-----BEGIN ")) {
      throw refused(
        `${join(folder, name)} is missing: on the MetaServer's machine 'grove ca issue door -door -ca_dir /var/lib/grove/ca -out FOLDER' makes ${DOOR_FILES.join(", ")}`,
      );
    }
  }
}
