// LOCK at a door over a FileServer that a test plays: what is made for a lock, and what becomes of it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type FakeHandlers, fileAttr, refusal } from "#client/commands/fake-server.fixture.ts";
import { serveFakeTree } from "./fake-tree.ts";

const LOCK =
  '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';

const TAKEN = { token: "urn:uuid:1", path: "/f", secondsLeft: 60 };

/** What a server answers to each of its calls, in order; a text is a refusal. */
type Answers = Readonly<Record<"lock" | "createFile" | "trashFile", readonly (string | object)[]>>;

/** Locks a name by one LOCK; its status and the calls that it took. */
async function lockAt(t: TestContext, answers: Answers): Promise<{ status: number; calls: string[] }> {
  const calls: string[] = [];
  const handler = (name: keyof Answers) => {
    const left = [...answers[name]];
    return (request: { readonly ifMatch?: string }): object => {
      calls.push([name, request.ifMatch ?? ""].join(" ").trim());
      const next = left.shift() ?? "INTERNAL";
      if (typeof next === "string") throw refusal(9, next);
      return next;
    };
  };
  const address = await serveFakeTree(t, {
    // It would not pass, and nothing needs it.
    getAttr: () => {
      throw refusal(13, "INTERNAL");
    },
    lock: handler("lock"),
    createFile: handler("createFile"),
    trashFile: handler("trashFile"),
  } as FakeHandlers);
  const answer = await fetch(`${address}f`, { method: "LOCK", headers: { depth: "0" }, body: LOCK });
  await answer.body?.cancel();
  return { status: answer.status, calls };
}

const MADE = fileAttr("f", Buffer.alloc(0), { etag: "made" });

test("what is there is locked by one call, and what is not gets a file first", async (t) => {
  const there = { lock: [TAKEN], createFile: [], trashFile: [] };
  assert.deepEqual(await lockAt(t, there), { status: 200, calls: ["lock"] });
  const missing = { lock: ["NO_SUCH_PATH", TAKEN], createFile: [MADE], trashFile: [] };
  assert.deepEqual(await lockAt(t, missing), { status: 201, calls: ["lock", "createFile", "lock"] });
  const nowhere = { lock: ["NO_SUCH_PATH", "NO_SUCH_PATH"], createFile: ["NO_SUCH_PATH"], trashFile: [] };
  assert.equal((await lockAt(t, nowhere)).status, 409);
});

test("of two who lock one new name the second locks the file of the first", async (t) => {
  const second = { lock: ["NO_SUCH_PATH", TAKEN], createFile: ["PATH_EXISTS"], trashFile: [] };
  assert.deepEqual(await lockAt(t, second), { status: 200, calls: ["lock", "createFile", "lock"] });
  const locked = { lock: ["NO_SUCH_PATH", "LOCKED"], createFile: ["PATH_EXISTS"], trashFile: [] };
  assert.deepEqual(await lockAt(t, locked), { status: 423, calls: ["lock", "createFile", "lock"] });
});

test("a file that was made for a refused lock goes again, in the version that was made", async (t) => {
  const calls = ["lock", "createFile", "lock", "trashFile made"];
  for (const trashed of [{}, "ETAG_MISMATCH", "OVERLOADED"]) {
    const refused = { lock: ["NO_SUCH_PATH", "LOCKED"], createFile: [MADE], trashFile: [trashed] };
    assert.deepEqual(await lockAt(t, refused), { status: 423, calls });
  }
});
