// The delay of other calls while a user shares a folder with 200,000 inodes, or ends that share.
import type { Program } from "#bench/child.ts";
import { type Lab, numberOf } from "#bench/lab.ts";
import { OWNER, startFileServer } from "#bench/node.ts";
import type { Group, RatioRow } from "#bench/row.ts";

const INODES = 200_000;
const SHARED = "/d0";
const OTHER = "other@example.com";
const LOOKED_AT = "/looked-at";
const CALLS = 6_000;
const IN_FLIGHT = 8;

interface TwoUsers {
  readonly sharer: Program;
  readonly looker: Program;
}

const row: RatioRow = {
  name: "other users' GetAttr p99 while a folder with 200,000 inodes is shared and unshared without a pause",
  against: "without it",
  atLeast: 0.3,
  rate: "1/p99",
  async sides(lab) {
    const { sharer, looker } = await twoUsers(lab);
    const look = async (): Promise<number> =>
      numberOf(await looker.run("slowLooks", { path: LOOKED_AT, calls: CALLS, inFlight: IN_FLIGHT }));
    return {
      theirs: look,
      async ours() {
        await sharer.run("startSharing", { path: SHARED, user: "friend@example.com", inodes: INODES });
        try {
          return await look();
        } finally {
          await sharer.run("stopSharing", null);
        }
      },
    };
  },
};

function twoUsers(lab: Lab): Promise<TwoUsers> {
  return lab.once("share", async () => {
    const directory = await lab.folder("disk");
    const builder = lab.program("tree-builder");
    // The folder itself counts as well.
    await builder.run("build", { directory, owner: OWNER, folders: 1, filesPerFolder: INODES - 1 });
    await builder.close();
    const { address } = await startFileServer(lab, directory, "plain");
    const [sharer, looker] = [lab.program("share-client"), lab.program("share-client")];
    await sharer.run("connect", { address, user: OWNER });
    await looker.run("connect", { address, user: OTHER });
    await looker.run("makeFile", LOOKED_AT);
    return { sharer, looker };
  });
}

export const share: Group = { name: "share", rows: () => [row] };
