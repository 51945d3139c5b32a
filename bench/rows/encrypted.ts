// Encrypted transfers from command to command: `grove put` and `grove get` against sftp and sshd of OpenSSH.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Command, signedInCommand } from "#bench/command.ts";
import type { Lab } from "#bench/lab.ts";
import { startFileServer } from "#bench/node.ts";
import { mibPerSecond } from "#bench/pump.ts";
import type { Group, RatioRow } from "#bench/row.ts";
import { type SshServer, SshServers } from "#testing/ssh-server.ts";

const FILE_BYTES = 2 ** 30;
const PIECE_BYTES = 4_194_304;
/** Copies at once: the local file, both servers', the old version of one, and one that is fetched. */
const COPIES = 5;
const REMOTE = "/large.bin";
const PROGRAMS = ["/usr/sbin/sshd", "/usr/bin/sftp"];

/** The other sides, in the words of the table. */
export const SFTP = {
  up: "`sftp` to sshd, the default cipher",
  down: "`sftp` from sshd, the default cipher",
} as const;

interface Commands {
  /** The file on this machine. */
  readonly local: string;
  /** Where a download goes. */
  readonly fetched: string;
  readonly grove: Command;
  /** Runs one line of an sftp batch over a connection of its own. */
  readonly sftp: (line: string) => Promise<void>;
  /** The same file in the folder of sshd. */
  readonly remote: string;
}

const uploadRow: RatioRow = {
  name: "encrypted upload of 1 GiB to a tmpfs, `grove put` from start to end",
  against: SFTP.up,
  atLeast: 1.3,
  rate: "MiB/s",
  async sides(lab) {
    const { grove, local } = await prepared(lab);
    return {
      ours: () => rateOf(() => grove("put", "-q", local, REMOTE)),
      theirs: (await sftpTransfers(lab)).up,
    };
  },
};

const downloadRow: RatioRow = {
  name: "encrypted download of 1 GiB to a tmpfs, `grove get` from start to end",
  against: SFTP.down,
  atLeast: 1.6,
  rate: "MiB/s",
  async sides(lab) {
    const { grove, local, fetched } = await prepared(lab);
    const sftp = await sftpTransfers(lab);
    await grove("put", "-q", local, REMOTE);
    await sftp.up();
    return {
      async ours() {
        await rm(fetched, { force: true });
        return rateOf(() => grove("get", "-q", REMOTE, fetched));
      },
      theirs: sftp.down,
    };
  },
};

async function rateOf(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return mibPerSecond(FILE_BYTES, start);
}

/** Both servers and a local file, all in memory. */
async function prepared(lab: Lab): Promise<Commands> {
  const ssh = await sshReady(lab);
  return lab.once("commands", async () => {
    const pair = await startFileServer(lab, await lab.folder("memory"), "TLS");
    return { ...ssh, grove: await signedInCommand(lab, pair, "TLS") };
  });
}

/** sshd, and a local file, in memory. */
function sshReady(lab: Lab): Promise<Omit<Commands, "grove">> {
  const missing = PROGRAMS.find((program) => !existsSync(program));
  if (missing !== undefined) throw new Error(`${missing} is not installed`);
  return lab.once("sshd", async () => {
    const folder = await lab.folder("memory");
    await lab.warm(folder, COPIES * FILE_BYTES);
    const local = join(folder, "local.bin");
    await writeRandom(local);
    const servers = new SshServers();
    lab.atEnd(() => servers.stop());
    const server = await servers.start({ settings: ["Subsystem sftp internal-sftp"] });
    const remotes = join(folder, "sftp");
    await mkdir(remotes);
    return {
      local,
      fetched: join(folder, "fetched.bin"),
      sftp: (line) => sftp(server, servers.keyFile, line),
      remote: join(remotes, "large.bin"),
    };
  });
}

/** Rates of sftp alone, for what else is held against it. */
export async function sftpTransfers(lab: Lab): Promise<Record<"up" | "down", () => Promise<number>>> {
  const { sftp, local, remote, fetched } = await sshReady(lab);
  return {
    up: () => rateOf(() => sftp(`put ${local} ${remote}`)),
    async down() {
      await rm(fetched, { force: true });
      return rateOf(() => sftp(`get ${remote} ${fetched}`));
    },
  };
}

async function writeRandom(path: string): Promise<void> {
  const piece = crypto.getRandomValues(Buffer.alloc(65_536));
  const whole = Buffer.concat(Array.from({ length: PIECE_BYTES / piece.length }, () => piece));
  const file = await open(path, "w");
  for (let written = 0; written < FILE_BYTES; written += whole.length) await file.write(whole);
  await file.close();
}

async function sftp(server: SshServer, keyFile: string, line: string): Promise<void> {
  const options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"];
  const words = ["-q", "-b", "-", "-F", "none", "-i", keyFile, "-P", String(server.port)];
  for (const option of options) words.push("-o", option);
  const child = spawn("/usr/bin/sftp", [...words, `${server.user}@${server.host}`], {
    stdio: ["pipe", "ignore", 2],
  });
  child.stdin?.end(`${line}\n`);
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`sftp ended with ${code ?? "a signal"}`);
}

export const encrypted: Group = { name: "encrypted", rows: () => [uploadRow, downloadRow] };
