// Changes whose answer from the FileServer is lost: they are sent again where that changes nothing.
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

/** Makes a folder where the first answers are these, and then that it is there; status and calls. */
async function makeFolder(t: TestContext, ...answers: readonly Error[]): Promise<[number, number]> {
  let calls = 0;
  const address = await serveFakeTree(t, {
    getAttr: ({ path }) => {
      if (calls > 0 || path === "/" || path === "") return folderAttr(path);
      throw refusal(5, "NO_SUCH_PATH");
    },
    createDirectory: () => {
      throw answers[calls++] ?? refusal(6, "PATH_EXISTS");
    },
  });
  const answer = await fetch(`${address}d`, { method: "MKCOL" });
  await answer.body?.cancel();
  return [answer.status, calls];
}

test("a folder is made again when the answer is lost, and is then the one that was made", async (t) => {
  assert.deepEqual(await makeFolder(t, refusal(14, "")), [201, 2]);
});

test("one that was refused for a while, or is there already, is not said to be made", async (t) => {
  assert.deepEqual(await makeFolder(t, refusal(14, "NODE_DRAINING")), [405, 2]);
  assert.deepEqual(await makeFolder(t), [405, 1]);
});
