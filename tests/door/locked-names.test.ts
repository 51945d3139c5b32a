// LOCK at a door over a FileServer that a test plays: what is made for a lock, and what becomes of it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type FakeHandlers, fileAttr, refusal } from "#client/commands/fake-server.fixture.ts";
import { serveFakeTree } from "./fake-tree.ts";

const LOCK =
  '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';

const TAKEN = { token: "urn:uuid:1", path: "/f", secondsLeft: 60 };

/** What a server answers to each of its calls, in order; a text is a refusal. */
type Answers = Readonly<Record<"lock" | "createFile" | "trashFile", Given> & { purgeTrash?: Given }>;
type Given = readonly (string | object)[];

/** The part of a request that is told. */
interface Asked {
  readonly ifMatch?: string;
  readonly trashIds?: readonly string[];
}

/** Locks a name by one LOCK; its status and the calls that it took. */
async function lockAt(t: TestContext, answers: Answers): Promise<{ status: number; calls: string[] }> {
  const calls: string[] = [];
  const handler = (name: keyof Answers) => {
    const left = [...(answers[name] ?? [])];
    return ({ ifMatch = "", trashIds = [] }: Asked): object => {
      calls.push([name, ifMatch, ...trashIds].filter((word) => word !== "").join(" "));
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
    purgeTrash: handler("purgeTrash"),
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

test("a file that was made for a refused lock goes again, in the version that was made, and from the trash too", async (t) => {
  const calls = ["lock", "createFile", "lock", "trashFile made"];
  const made = { lock: ["NO_SUCH_PATH", "LOCKED"], createFile: [MADE] };
  // Without an item there is nothing to purge, and purging nothing in particular would purge everything.
  for (const trashed of [{}, { item: {} }, "ETAG_MISMATCH", "OVERLOADED"]) {
    const refused = { ...made, trashFile: [trashed], purgeTrash: [] };
    assert.deepEqual(await lockAt(t, refused), { status: 423, calls });
  }
  for (const purged of [{}, "NOT_OWNER"]) {
    const refused = { ...made, trashFile: [{ item: { trashId: "t1" } }], purgeTrash: [purged] };
    assert.deepEqual(await lockAt(t, refused), { status: 423, calls: [...calls, "purgeTrash t1"] });
  }
});

test("no file is made for a lock that would be refused", async (t) => {
  const refused = { lock: ["LOCKED"], createFile: [], trashFile: [] };
  assert.deepEqual(await lockAt(t, refused), { status: 423, calls: ["lock"] });
});
