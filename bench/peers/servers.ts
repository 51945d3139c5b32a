// The servers of the side-by-side, each on a tmpfs and started as its own documentation says.
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { inPath, mustBeThere } from "#bench/installed.ts";
import type { Lab } from "#bench/lab.ts";
import { startNginx } from "#bench/nginx.ts";
import { OWNER, startFileServer } from "#bench/node.ts";
import { certificateFolder, type Security } from "#bench/pair.ts";
import { freePort } from "#testing/free-ports.ts";
import { childrenOf } from "#testing/server-process.ts";
import { SshServers } from "#testing/ssh-server.ts";

/** A running server and how the load program reaches it. */
export interface Peer {
  readonly name: string;
  readonly version: string;
  /** The process whose time counts, with all that it has started. */
  readonly pid: number;
  readonly kind: "grove" | "sftp" | "webdav" | "s3";
  readonly address: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** A server to start; throws where it is not installed. */
export type StartPeer = (lab: Lab) => Promise<Peer>;

const SSHD = "/usr/sbin/sshd";
/** Credentials of a server that lives for minutes on this machine's own address. */
const MINIO_USER = "bench-user";
const MINIO_PASSWORD = "bench-password";

const grove =
  (security: Security): StartPeer =>
  async (lab) => {
    const { server, address } = await startFileServer(lab, await lab.folder("memory"), security);
    const trusted = security === "plain" ? "" : join(await certificateFolder(lab), "ca.crt");
    const settings = { owner: OWNER, ca: trusted };
    return {
      name: `Grove ${security}`,
      version: "this clone",
      pid: server.pid,
      kind: "grove",
      address,
      settings,
    };
  };

async function openSsh(lab: Lab): Promise<Peer> {
  mustBeThere(SSHD);
  const servers = new SshServers();
  lab.atEnd(() => servers.stop());
  const server = await servers.start({ settings: ["Subsystem sftp internal-sftp"] });
  const pid = childrenOf(process.pid).find((child) => commandOf(child).includes(SSHD));
  if (pid === undefined) throw new Error("sshd is not among the children of this process");
  return {
    name: "OpenSSH SFTP (encrypted)",
    version: said("ssh", "-V"),
    pid,
    kind: "sftp",
    address: `${server.host}:${server.port}`,
    settings: { user: server.user, key: servers.keyFile, base: await lab.folder("memory") },
  };
}

async function nginx(lab: Lab): Promise<Peer> {
  const { program, pid, port } = await startNginx(lab, "plain");
  const address = `127.0.0.1:${port}`;
  return { name: "nginx WebDAV", version: said(program, "-v"), pid, kind: "webdav", address, settings: {} };
}

async function minio(lab: Lab): Promise<Peer> {
  const program = process.env["GROVE_BENCH_MINIO"] ?? inPath("minio");
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  const folder = await lab.folder("memory");
  const { pid } = await lab.service(
    [program, "server", "--quiet", "--address", address, join(folder, "data")],
    {
      env: { MINIO_ROOT_USER: MINIO_USER, MINIO_ROOT_PASSWORD: MINIO_PASSWORD, MINIO_BROWSER: "off" },
      isQuiet: true,
      isUp: () => isReady(`http://${address}/minio/health/ready`),
    },
  );
  const settings = { user: MINIO_USER, password: MINIO_PASSWORD };
  return { name: "MinIO", version: said(program, "--version"), pid, kind: "s3", address, settings };
}

/** All servers in the order of the table. */
export const SERVERS: readonly StartPeer[] = [grove("plain"), grove("TLS"), openSsh, nginx, minio];

/** The first line that a program says of its version. */
function said(program: string, word: string): string {
  const { stdout, stderr } = spawnSync(program, [word], { encoding: "utf8" });
  return `${stdout}${stderr}`.split("\n", 1)[0] ?? "";
}

function commandOf(pid: number): string {
  return execFileSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" });
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}
