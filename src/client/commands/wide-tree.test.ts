// Tests of what `get -r` and `put -r` keep in memory of a tree with very many folders.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { FOLDERS_IN_FLIGHT } from "#client/terminal/limits.ts";
import { walkLocalTree } from "#client/transfer/local-tree.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { makeTestClient } from "./client.fixture.ts";
import { folderAttr, refusal, startFakeServer } from "./fake-server.fixture.ts";

const FOLDERS = 60_000;
const PAGE = 1_000;
/** A folder's name and what a list needs for it; a page's text or a path of its own is more. */
const FOLDER_MAX_BYTES = 160;
const PUT_FOLDERS = 20_000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

const name = (at: number): string => `a folder of the tree, ${String(at).padStart(6, "0")}`;

test("get -r keeps of a folder that waits to be listed little more than its name", {
  timeout: 120_000,
}, async () => {
  const client = await makeTestClient();
  let before = 0;
  let kept = 0;
  let asked = 0;
  const all = Promise.withResolvers<void>();
  const server = await startFakeServer({
    getAttr: ({ path }) => folderAttr(path.slice(1)),
    listDir: async ({ path, pageToken }) => {
      if (path !== "/tree") {
        // The last of these takes the place of the tree's own listing, which has ended then.
        if (++asked === FOLDERS_IN_FLIGHT) {
          kept = heapBytes() - before;
          all.resolve();
        }
        await all.promise;
        throw refusal(14, "STORAGE_FAILED");
      }
      const start = Number(pageToken || 0);
      if (start === 0) before = heapBytes();
      const names = Array.from({ length: PAGE }, (_, at) => name(start + at));
      const nextPageToken = start + PAGE < FOLDERS ? String(start + PAGE) : "";
      return { entries: names.map((text) => folderAttr(text)), nextPageToken };
    },
  });
  try {
    const login = ["--mock", "a@b.c", "--fileserver", server.address];
    assert.equal((await client.run(import("./login-command.ts"), login)).code, 0);
    await client.run(import("./get-command.ts"), ["-r", "/tree", join(client.folder, "out")]);
    assert.ok(kept > 0, "no folder was listed");
    assert.ok(kept < FOLDERS * FOLDER_MAX_BYTES, `${Math.round(kept / FOLDERS)} bytes of each folder`);
  } finally {
    await server.stop();
    await client.stop();
  }
});

test("put -r keeps of a folder that waits to be walked little more than its name", async () => {
  const tree = scratchFolder("grove-wide-");
  for (let at = 0; at < PUT_FOLDERS; at++) mkdirSync(join(tree, name(at)));
  const before = heapBytes();
  const walk = walkLocalTree(tree);
  const found: string[] = [];
  // The top, then the first folder in it: all others wait by then.
  for (let at = 0; at < 2; at++) found.push((await walk.next()).value?.localPath ?? "");
  const kept = (heapBytes() - before) / PUT_FOLDERS;
  assert.deepEqual(found, [tree, join(tree, name(0))]);
  assert.ok(kept < FOLDER_MAX_BYTES, `${Math.round(kept)} bytes of each folder`);
  await walk.return();
});
