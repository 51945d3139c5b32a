// The list of ended credentials: one user fills it for nobody, and a full one disturbs nobody's younger sessions.
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { endsOfUser } from "#base/door-call.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { ENDS_KEPT_MS, ENDS_LISTED, ENDS_LISTED_PER_USER, listEnds } from "./credential-commands.ts";
import type { EndedCredential, Revocations } from "./credential-store.ts";
import { appPassword, doorSession } from "./credentials-contract.fixture.ts";
import type { Directory } from "./directory.ts";
import { DOOR_SESSIONS_PER_PERSON } from "./door-session-commands.ts";
import { openDirectory } from "./open-directory.ts";
import { refused } from "./store-under-test.fixture.ts";

const NONE: Revocations = { credentials: [], allBeforeMs: 0 };

function ends(owner: string, count: number, fromMs = 1): EndedCredential[] {
  return Array.from({ length: count }, (_, at) => ({
    credential: `app:${owner}${at}`,
    owner,
    atMs: fromMs + at,
  }));
}

test("more ends of one user than are listed become one line about that user's older tickets", () => {
  const bob = ends("bob", 1);
  let list = listEnds(NONE, bob, 1);
  for (const end of ends("alice", ENDS_LISTED + 1)) list = listEnds(list, [end], end.atMs);
  assert.equal(list.allBeforeMs, 0);
  assert.equal(list.credentials.length, bob.length + 1 + ENDS_LISTED_PER_USER);
  assert.deepEqual(list.credentials[0], bob[0]);
  const newest = ENDS_LISTED + 1;
  const lines = list.credentials.filter(({ credential }) => credential === endsOfUser("alice"));
  assert.deepEqual(lines, [
    { credential: endsOfUser("alice"), owner: "alice", atMs: newest - ENDS_LISTED_PER_USER },
  ]);
  // Sessions of browsers are counted apart from app passwords, as the way to one another is not the same.
  const signedOut = { credential: "browser:1", owner: "alice", atMs: newest };
  list = listEnds(list, [signedOut], newest);
  assert.equal(list.credentials.length, bob.length + 2 + ENDS_LISTED_PER_USER);
  // The line goes as the ends do for which it stands.
  list = listEnds(list, ends("carol", 1), newest + ENDS_KEPT_MS);
  assert.deepEqual(list.credentials, ends("carol", 1));
});

test("a full list ends the sessions from before its eldest line, and keeps the younger lines", () => {
  const many = Array.from({ length: ENDS_LISTED }, (_, at) => ends(`user${at}`, 1, at + 1)).flat();
  const full = listEnds(NONE, many, ENDS_LISTED);
  assert.equal(full.allBeforeMs, 0);
  const list = listEnds(full, ends("alice", 2, ENDS_LISTED), ENDS_LISTED + 1);
  assert.equal(list.credentials.length, ENDS_LISTED);
  assert.equal(list.allBeforeMs, 2);
  assert.deepEqual(list.credentials[0], many[2]);
});

test("ends that a version before has listed without their user stay until they are old", () => {
  const older = Array.from({ length: 300 }, (_, at) => ({ credential: `app:${at}`, atMs: at + 1 }));
  const list = listEnds({ credentials: older, allBeforeMs: 7 }, ends("alice", 1, 300), 300);
  assert.equal(list.credentials.length, 301);
  assert.equal(list.allBeforeMs, 7);
});

async function emptyStore(t: TestContext): Promise<Directory> {
  const path = join(scratchFolder("ends-"), "meta.db");
  const directory = await openDirectory(`sqlite:${path}`, { clock: new ManualClock() });
  t.after(() => directory.close());
  return directory;
}

test("who has revoked a hundred app passwords in two hours makes no more until then", async (t) => {
  const directory = await emptyStore(t);
  const make = async (id: string, createdMs: number, owner = "alice"): Promise<void> =>
    directory.addAppPassword(appPassword(id, owner, { createdMs }));
  for (let at = 1; at <= 100; at++) {
    await make(`a${at}`, at);
    await directory.revokeAppPassword("alice", `a${at}`, at);
  }
  await refused("RATE_LIMITED", make("more", 101));
  await make("b", 101, "bob");
  await directory.addDoorSession(doorSession("s", "alice", { createdMs: 101 }));
  await refused("RATE_LIMITED", make("more", ENDS_KEPT_MS));
  await make("more", ENDS_KEPT_MS + 1);
  // Ending is never refused.
  await directory.revokeAppPassword("alice", "more", ENDS_KEPT_MS);
  assert.equal((await directory.revocations()).allBeforeMs, 0);
});

test("a hundred ended sign-ins of a person in ten minutes are enough, and none of them opens again", async (t) => {
  const directory = await emptyStore(t);
  const open = async (id: string, createdMs: number, owner = "alice"): Promise<void> =>
    directory.addDoorSession(doorSession(id, owner, { createdMs, endsMs: 10_000_000 }));
  for (let at = 1; at <= DOOR_SESSIONS_PER_PERSON + 100; at++) await open(`s${at}`, at);
  await refused("RATE_LIMITED", open("more", 200));
  await open("other", 200, "bob");
  const firstEndMs = DOOR_SESSIONS_PER_PERSON + 1;
  await refused("RATE_LIMITED", open("more", firstEndMs + 599_999));
  await open("more", firstEndMs + 600_000);
  await refused("TOKEN_REJECTED", open("s1", firstEndMs + 600_000));
});
