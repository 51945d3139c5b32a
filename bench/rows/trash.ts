// A large folder goes into the trash and out of it as fast as a small one.
import type { Lab } from "#bench/lab.ts";
import { type FileServerPair, OWNER, startFileServer } from "#bench/node.ts";
import type { Group, RatioRow } from "#bench/row.ts";

const LARGE_INODES = 100_000;
const SMALL_INODES = 10;
const TIMES = 200;

const row: RatioRow = {
  name: "trash and restore of a folder with 100,000 inodes",
  against: "of a folder with 10",
  atLeast: 0.2,
  rate: "times/s",
  async sides(lab) {
    const pair = await withFolders(lab);
    const run = (path: string) => () => pair.measure("trashAndRestore", { path, times: TIMES });
    return { ours: run("/d0"), theirs: run("/small") };
  },
};

function withFolders(lab: Lab): Promise<FileServerPair> {
  return lab.once("trash", async () => {
    const directory = await lab.folder("disk");
    const builder = lab.program("tree-builder");
    await builder.run("build", { directory, owner: OWNER, folders: 1, filesPerFolder: LARGE_INODES });
    await builder.close();
    const pair = await startFileServer(lab, directory, "plain");
    await pair.client.run("makeFolder", "/small");
    const files = { folders: ["/small"], prefix: "f", files: SMALL_INODES, inFlight: 1, bytes: 0 };
    await pair.client.run("create", files);
    return pair;
  });
}

export const trash: Group = { name: "trash", rows: () => [row] };
