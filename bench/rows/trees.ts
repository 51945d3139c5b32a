// Trees of small files by the command line, against the same calls in a bare loop without local files.
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Command, signedInCommand } from "#bench/command.ts";
import type { Lab } from "#bench/lab.ts";
import { type FileServerPair, startFileServer } from "#bench/node.ts";
import { perSecond } from "#bench/pump.ts";
import type { Group, RatioRow } from "#bench/row.ts";

const IN_FLIGHT = 64;
const FILE_BYTES = 4_096;
const FILES_PER_FOLDER = 1_000;
/** Enough that a command's start of 0.3 s counts little; GROVE_BENCH_TREE_FILES=100000 measures more. */
const FILES = Math.max(1, Number(process.env["GROVE_BENCH_TREE_FILES"] ?? 40_000));
const FOLDERS = Math.ceil(FILES / FILES_PER_FOLDER);
const COUNT = FILES.toLocaleString("en-US");

interface Trees {
  readonly pair: FileServerPair;
  /** Path of the tree on this machine; its copy on the server has the same name. */
  readonly local: string;
  readonly folder: string;
  readonly grove: Command;
}

const upRow: RatioRow = {
  name: `upload of ${COUNT} files of 4 KiB by \`grove put -r\`, from start to end`,
  against: `\`UploadFile\` calls in a bare loop, ${IN_FLIGHT} in flight`,
  atLeast: 0.7,
  rate: "files/s",
  async sides(lab) {
    const trees = await prepared(lab);
    let round = 0;
    return {
      async ours() {
        const target = `/put-${++round}`;
        return filesPerSecond(() => trees.grove("put", "-q", "-r", trees.local, target));
      },
      async theirs() {
        const folders = await makeFolders(trees, `/loop-${++round}`);
        return trees.pair.measure("uploadLoop", {
          folders,
          prefix: "f",
          files: FILES,
          inFlight: IN_FLIGHT,
          bytes: FILE_BYTES,
        });
      },
    };
  },
};

const downRow: RatioRow = {
  name: `download of ${COUNT} files of 4 KiB by \`grove get -r\`, from start to end`,
  against: `\`DownloadFile\` calls in a bare loop, ${IN_FLIGHT} in flight`,
  atLeast: 0.7,
  rate: "files/s",
  async sides(lab) {
    const trees = await prepared(lab);
    await trees.grove("put", "-q", "-r", trees.local, "/down");
    const folders = Array.from({ length: FOLDERS }, (_, at) => `/down/d${at}`);
    let round = 0;
    return {
      async ours() {
        const target = join(trees.folder, `got-${++round}`);
        const rate = await filesPerSecond(() => trees.grove("get", "-q", "-r", "/down", target));
        await rm(target, { recursive: true });
        return rate;
      },
      theirs: () =>
        trees.pair.measure("downloadLoop", {
          folders,
          prefix: "f",
          files: FILES,
          inFlight: IN_FLIGHT,
          bytes: FILE_BYTES,
        }),
    };
  },
};

async function filesPerSecond(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return perSecond(FILES, start);
}

/** A signed-in client, a server on the disk, and a tree of files in memory, which spares the disk. */
function prepared(lab: Lab): Promise<Trees> {
  return lab.once("trees", async () => {
    const pair = await startFileServer(lab, await lab.folder("disk"), "plain");
    const folder = await lab.folder("memory");
    const local = join(folder, "tree");
    for (let at = 0; at < FOLDERS; at++) await mkdir(join(local, `d${at}`), { recursive: true });
    const data = Buffer.alloc(FILE_BYTES, 0xa5);
    for (let at = 0; at < FILES; at++) await writeFile(join(local, `d${at % FOLDERS}`, `f-${at}`), data);
    return { pair, local, folder, grove: await signedInCommand(lab, pair, "plain") };
  });
}

async function makeFolders(trees: Trees, top: string): Promise<string[]> {
  await trees.pair.client.run("makeFolder", top);
  const folders = Array.from({ length: FOLDERS }, (_, at) => `${top}/d${at}`);
  for (const folder of folders) await trees.pair.client.run("makeFolder", folder);
  return folders;
}

export const trees: Group = { name: "trees", rows: () => [upRow, downRow] };
