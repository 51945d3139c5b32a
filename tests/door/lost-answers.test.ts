// A small PUT whose answer from the FileServer is lost: it is sent again where that changes nothing.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { fileAttr, folderAttr, refusal, startFakeServer } from "#client/commands/fake-server.fixture.ts";
import { GroveTree } from "#door/tree/grove-tree.ts";
import { makePerson } from "#door/tree/person.ts";
import { serveTree } from "#door/webdav/litmus.fixture.ts";

const BODY = Buffer.from("hello");

/** Puts a file where the first answer to CreateFile is lost, and what was there is there; status and calls. */
async function put(t: TestContext, headers: Readonly<Record<string, string>>): Promise<[number, number]> {
  let calls = 0;
  const server = await startFakeServer({
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
  t.after(() => server.stop());
  const gone = new AbortController();
  const person = makePerson({
    username: "alice@example.com",
    profile: { metaservers: [], ca: undefined, mock: true, idp: undefined, fileserver: server.address },
    credential: () => Promise.resolve("mock-jwt.alice@example.com"),
    signal: gone.signal,
  });
  t.after(() => {
    gone.abort();
    person.cluster.close();
  });
  const address = await serveTree(t, new GroveTree(person, systemClock));
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
