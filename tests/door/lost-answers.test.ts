// A small PUT whose answer from the FileServer is lost: it is sent again where that changes nothing.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { fileAttr, folderAttr, refusal } from "#client/commands/fake-server.fixture.ts";
import { serveFakeTree } from "./fake-tree.ts";

const BODY = Buffer.from("hello");

/** Puts a file where the first answer to CreateFile is lost, and what was there is there; status and calls. */
async function put(t: TestContext, headers: Readonly<Record<string, string>>): Promise<[number, number]> {
  let calls = 0;
  const address = await serveFakeTree(t, {
    getAttr: ({ path }) => {
      if (path === "/" || path === "") return folderAttr("");
      throw refusal(5, "NO_SUCH_PATH");
    },
    listLocks: () => ({ locks: [] }),
    createFile: () => {
      if (++calls === 1) throw refusal(14, "");
      return fileAttr("f", BODY);
    },
  });
  const answer = await fetch(`${address}f`, { method: "PUT", body: BODY, headers });
  await answer.body?.cancel();
  return [answer.status, calls];
}

test("a PUT of any version is made again when its answer is lost", async (t) => {
  assert.deepEqual(await put(t, {}), [201, 2]);
});

test("one of a file that must be new is not: what is there then could be its own", async (t) => {
  assert.deepEqual(await put(t, { "if-none-match": "*" }), [503, 1]);
});
