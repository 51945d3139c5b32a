// Whether a node with a million inodes is as fast as one with ten thousand.
import type { Lab } from "#bench/lab.ts";
import { type FileServerPair, OWNER, startFileServer } from "#bench/node.ts";
import { amount } from "#bench/report.ts";
import type { Group, RatioRow } from "#bench/row.ts";

const SMALL_INODES = 10_000;
const FILES_PER_FOLDER = 1_000;
const IN_FLIGHT = 64;
const CALLS = 15_000;
const FILES = 5_000;
/** Shares no factor with the number of paths, so that every part of the tree is looked at in no simple order. */
const STRIDE = 7_919;
const AGAINST = "with 10,000 inodes";

interface Tree extends FileServerPair {
  readonly folders: readonly string[];
  readonly paths: readonly string[];
}

function tree(lab: Lab, inodes: number): Promise<Tree> {
  return lab.once(`tree of ${inodes}`, async () => {
    const folderCount = Math.ceil(inodes / FILES_PER_FOLDER);
    const directory = await lab.folder("disk");
    const builder = lab.program("tree-builder");
    await builder.run("build", {
      directory,
      owner: OWNER,
      folders: folderCount,
      filesPerFolder: FILES_PER_FOLDER,
    });
    await builder.close();
    const folders = Array.from({ length: folderCount }, (_, at) => `/d${at}`);
    const count = folderCount * FILES_PER_FOLDER;
    const paths = Array.from({ length: Math.min(count, CALLS) }, (_, at) => {
      const file = (at * STRIDE * Math.max(1, Math.floor(count / CALLS))) % count;
      return `/d${Math.floor(file / FILES_PER_FOLDER)}/f${file % FILES_PER_FOLDER}`;
    });
    return { ...(await startFileServer(lab, directory, "plain")), folders, paths };
  });
}

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
  rows: ({ inodes }) => [lookRow(inodes), createRow(inodes)],
};
