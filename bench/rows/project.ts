// A real tree, this project's node_modules: `grove put -r` and `get -r` over TLS against `cp -r` and `sync`.
import { execFile } from "node:child_process";
import { opendir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Command, signedInCommand } from "#bench/command.ts";
import type { Lab } from "#bench/lab.ts";
import { startFileServer } from "#bench/node.ts";
import { perSecond } from "#bench/pump.ts";
import type { Group, RatioRow } from "#bench/row.ts";

const TREE = fileURLToPath(new URL("../../node_modules", import.meta.url));
const run = promisify(execFile);

interface Project {
  readonly grove: Command;
  /** A folder on the disk for copies. */
  readonly folder: string;
  readonly files: number;
}

const putRow: RatioRow = {
  name: "upload of `node_modules` by `grove put -r` to a FileServer on the disk, from start to end, TLS",
  against: "`cp -r` and `sync`",
  atLeast: 0.4,
  rate: "files/s",
  async sides(lab) {
    const project = await prepared(lab);
    let round = 0;
    return {
      ours: () => rateOf(project, () => project.grove("put", "-q", "-r", TREE, `/put-${++round}`)),
      theirs: () => copied(project),
    };
  },
};

const getRow: RatioRow = {
  name: "download of `node_modules` by `grove get -r` to the disk, from start to end, TLS",
  against: "`cp -r` and `sync`",
  atLeast: 0.5,
  rate: "files/s",
  async sides(lab) {
    const project = await prepared(lab);
    await project.grove("put", "-q", "-r", TREE, "/get");
    return {
      ours: () => removedAfter(project, (to) => project.grove("get", "-q", "-r", "/get", to)),
      theirs: () => copied(project),
    };
  },
};

function copied(project: Project): Promise<number> {
  return removedAfter(project, async (to) => {
    await run("cp", ["-r", TREE, to]);
    await run("sync", ["-f", project.folder]);
  });
}

/** Files a second of work that makes a copy, which is removed before the next. */
async function removedAfter(project: Project, work: (to: string) => Promise<void>): Promise<number> {
  const to = join(project.folder, "copy");
  const rate = await rateOf(project, () => work(to));
  await rm(to, { recursive: true });
  return rate;
}

/** What others left unwritten goes to the disk first, since it would count for one side. */
async function rateOf({ files, folder }: Project, work: () => Promise<void>): Promise<number> {
  await run("sync", ["-f", folder]);
  const start = performance.now();
  await work();
  return perSecond(files, start);
}

function prepared(lab: Lab): Promise<Project> {
  return lab.once("project", async () => {
    const pair = await startFileServer(lab, await lab.folder("disk"), "TLS");
    const { files, bytes } = await sizeOf(TREE);
    process.stderr.write(`node_modules: ${files} files, ${Math.round(bytes / 1e6)} MB\n`);
    return { grove: await signedInCommand(lab, pair, "TLS"), folder: await lab.folder("disk"), files };
  });
}

async function sizeOf(folder: string): Promise<{ files: number; bytes: number }> {
  let [files, bytes] = [0, 0];
  for await (const entry of await opendir(folder, { recursive: true })) {
    if (!entry.isFile()) continue;
    files += 1;
    bytes += (await stat(join(entry.parentPath, entry.name))).size;
  }
  return { files, bytes };
}

export const project: Group = { name: "project", rows: () => [putRow, getRow] };
