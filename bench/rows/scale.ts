// A node with a million inodes against one with ten thousand: equal speed.
import type { Lab } from "#bench/lab.ts";
import { median } from "#bench/measure.ts";
import { type FileServerPair, OWNER, startFileServer } from "#bench/node.ts";
import { processorMsOf } from "#bench/processor-time.ts";
import { amount } from "#bench/report.ts";
import type { Group, LimitRow, RatioRow } from "#bench/row.ts";

const SMALL_INODES = 10_000;
const FILES_PER_FOLDER = 1_000;
const IN_FLIGHT = 64;
const CALLS = 15_000;
const FILES = 5_000;
/** Coprime to the number of paths, so that looks reach every part of the tree in no simple order. */
const STRIDE = 7_919;
const STARTS = 5;
/** As many as a task fills well within its time. */
const FOLDERS_AT_ONCE = 200;
const AGAINST = "with 10,000 inodes";

interface Tree extends FileServerPair {
  readonly folders: readonly string[];
  readonly paths: readonly string[];
}

function tree(lab: Lab, inodes: number): Promise<Tree> {
  return lab.once(`tree of ${inodes}`, async () => {
    const folderCount = Math.ceil(inodes / FILES_PER_FOLDER);
    const directory = await filled(lab, inodes);
    const folders = Array.from({ length: folderCount }, (_, at) => `/d${at}`);
    const count = folderCount * FILES_PER_FOLDER;
    const paths = Array.from({ length: Math.min(count, CALLS) }, (_, at) => {
      const file = (at * STRIDE * Math.max(1, Math.floor(count / CALLS))) % count;
      return `/d${Math.floor(file / FILES_PER_FOLDER)}/f${file % FILES_PER_FOLDER}`;
    });
    return { ...(await startFileServer(lab, directory, "plain")), folders, paths };
  });
}

/** A data folder with so many inodes, not served yet. */
function filled(lab: Lab, inodes: number): Promise<string> {
  return lab.once(`folder of ${inodes}`, async () => {
    const directory = await lab.folder("disk");
    const builder = lab.program("tree-builder");
    const folderCount = Math.ceil(inodes / FILES_PER_FOLDER);
    for (let firstFolder = 0; firstFolder < folderCount; firstFolder += FOLDERS_AT_ONCE) {
      await builder.run("build", {
        directory,
        owner: OWNER,
        firstFolder,
        folders: Math.min(FOLDERS_AT_ONCE, folderCount - firstFolder),
        filesPerFolder: FILES_PER_FOLDER,
      });
    }
    await builder.close();
    return directory;
  });
}

/** Processor time from the start of `grove fileserver` until it is ready. */
async function startMs(lab: Lab, directory: string): Promise<number> {
  const { server, client } = await startFileServer(lab, directory, "plain");
  const takenMs = processorMsOf(server.pid);
  await client.close();
  await server.close();
  return takenMs;
}

/** Before the rows that keep a server on the folder. */
const startRow = (inodes: number): LimitRow => ({
  name: `start-up of a node with ${amount(inodes)} inodes until it serves, processor time`,
  unit: "s",
  below: 1,
  async measure(lab) {
    const directory = await filled(lab, inodes);
    const taken: number[] = [];
    for (let start = 0; start < STARTS; start += 1) taken.push(await startMs(lab, directory));
    const empty = await startMs(lab, await filled(lab, SMALL_INODES));
    return { value: median(taken) / 1_000, detail: `with 10,000 inodes ${amount(empty / 1_000)} s` };
  },
});

const startAgainstSmall = (inodes: number): RatioRow => ({
  name: `start-up with ${amount(inodes)} inodes`,
  against: AGAINST,
  atLeast: 0.8,
  rate: "1/s of processor time",
  async sides(lab) {
    const [small, large] = [await filled(lab, SMALL_INODES), await filled(lab, inodes)];
    const start = (directory: string) => async () => 1_000 / (await startMs(lab, directory));
    return { ours: start(large), theirs: start(small) };
  },
});

const lookRow = (inodes: number): RatioRow => ({
  name: `GetAttr with ${amount(inodes)} inodes`,
  against: AGAINST,
  atLeast: 0.8,
  rate: "calls/s",
  async sides(lab) {
    const small = await tree(lab, SMALL_INODES);
    const large = await tree(lab, inodes);
    const look = (on: Tree) => () =>
      on.measure("getAttr", { paths: on.paths, calls: CALLS, inFlight: IN_FLIGHT });
    return { ours: look(large), theirs: look(small) };
  },
});

const createRow = (inodes: number): RatioRow => ({
  name: `CreateFile with ${amount(inodes)} inodes`,
  against: AGAINST,
  atLeast: 0.8,
  rate: "files/s",
  async sides(lab) {
    const small = await tree(lab, SMALL_INODES);
    const large = await tree(lab, inodes);
    let round = 0;
    const create = (on: Tree) => () => {
      round += 1;
      return on.measure("create", {
        folders: on.folders,
        prefix: `new-${round}`,
        files: FILES,
        inFlight: IN_FLIGHT,
        bytes: 0,
      });
    };
    return { ours: create(large), theirs: create(small) };
  },
});

export const scale: Group = {
  name: "scale",
  rows: ({ inodes }) => [
    startRow(inodes),
    ...(inodes > 1_000_000 ? [startAgainstSmall(inodes)] : []),
    lookRow(inodes),
    createRow(inodes),
  ],
};
