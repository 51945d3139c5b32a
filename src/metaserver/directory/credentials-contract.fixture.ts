// The contract of the metadata store about app passwords and their end, for every implementation.
import assert from "node:assert/strict";
import { APP_PASSWORDS_PER_USER, USE_NOTED_EVERY_MS } from "./credential-commands.ts";
import type { AppPasswordRecord, DoorSessionRecord } from "./credential-store.ts";
import { DOOR_SESSIONS_PER_PERSON } from "./door-session-commands.ts";
import { type Contract, refused } from "./store-under-test.fixture.ts";

/** An app password with defaults for all facts that a test does not set. */
export function appPassword(
  id: string,
  owner: string,
  facts: Partial<AppPasswordRecord> = {},
): AppPasswordRecord {
  return {
    id,
    owner,
    issuer: "https://idp",
    subject: "7",
    name: `name of ${id}`,
    hash: "ab".repeat(32),
    readOnly: false,
    folderId: "",
    folderPath: "",
    createdMs: 1,
    endsMs: 0,
    lastUsedMs: 0,
    doors: {},
    ...facts,
  };
}

/** A browser's session with defaults for all facts that a test does not set. */
export function doorSession(
  id: string,
  owner: string,
  facts: Partial<DoorSessionRecord> = {},
): DoorSessionRecord {
  return {
    id,
    owner,
    issuer: "https://idp",
    subject: "7",
    hash: "cd".repeat(32),
    createdMs: 1,
    endsMs: 1_000,
    lastUsedMs: 1,
    doors: { d1: 1 },
    ...facts,
  };
}

const ALICE = "alice@example.com";
const BOB = "bob@example.com";

/** Declares the tests. */
export function testCredentials(contract: Contract): void {
  contract("app passwords are kept for each user, also after a restart, in their order", async (store) => {
    const { directory } = store;
    assert.deepEqual(await directory.appPasswordsOf(ALICE), []);
    assert.equal(await directory.findAppPassword("a"), undefined);
    for (const kept of [appPassword("b", ALICE), appPassword("a", ALICE), appPassword("c", BOB)])
      await directory.addAppPassword(kept);
    await refused("BAD_ARGUMENT", directory.addAppPassword(appPassword("d", ALICE, { name: "name of a" })));
    const again = await store.reopen();
    assert.deepEqual(await again.appPasswordsOf(ALICE), [appPassword("b", ALICE), appPassword("a", ALICE)]);
    assert.deepEqual(await again.findAppPassword("c"), appPassword("c", BOB));
    assert.equal(await again.findAppPassword("d"), undefined);
    assert.deepEqual(await again.userStates(), []);
  });

  contract("a user has at most fifty of them", async ({ directory }) => {
    for (let at = 0; at < APP_PASSWORDS_PER_USER; at++)
      await directory.addAppPassword(appPassword(`a${at}`, ALICE));
    await refused("OVERLOADED", directory.addAppPassword(appPassword("more", ALICE)));
    await directory.addAppPassword(appPassword("b", BOB));
    await directory.revokeAppPassword(ALICE, "a7", 5);
    await directory.addAppPassword(appPassword("more", ALICE));
  });

  contract("only its owner revokes one, by id or name, and its end is listed", async ({ directory }) => {
    await directory.addAppPassword(appPassword("a", ALICE));
    await directory.addAppPassword(appPassword("b", ALICE));
    assert.equal(await directory.revokeAppPassword(BOB, "a", 5), undefined);
    assert.deepEqual(await directory.revocations(), { credentials: [], allBeforeMs: 0 });
    assert.equal((await directory.revokeAppPassword(ALICE, "name of a", 5))?.id, "a");
    assert.equal((await directory.revokeAppPassword(ALICE, "b", 6))?.id, "b");
    assert.equal(await directory.revokeAppPassword(ALICE, "b", 7), undefined);
    assert.deepEqual(await directory.appPasswordsOf(ALICE), []);
    const credentials = [
      { credential: "app:a", owner: ALICE, atMs: 5 },
      { credential: "app:b", owner: ALICE, atMs: 6 },
    ];
    assert.deepEqual(await directory.revocations(), { credentials, allBeforeMs: 0 });
    await directory.noteAppPasswordUse("a", "d1", 9);
    assert.equal(await directory.findAppPassword("a"), undefined);
  });

  contract("what was used at a door since a moment ends, and nothing else", async ({ directory }) => {
    for (const id of ["early", "late", "other", "never"])
      await directory.addAppPassword(appPassword(id, id === "other" ? BOB : ALICE));
    const sinceMs = 10 * USE_NOTED_EVERY_MS;
    await directory.noteAppPasswordUse("early", "d1", sinceMs - USE_NOTED_EVERY_MS);
    await directory.noteAppPasswordUse("late", "d1", sinceMs + 1);
    await directory.noteAppPasswordUse("late", "d2", sinceMs + 2);
    await directory.noteAppPasswordUse("other", "d2", sinceMs + 2);
    assert.equal((await directory.findAppPassword("late"))?.lastUsedMs, sinceMs + 2);
    const ended = await directory.revokeUsedAtDoor("d1", sinceMs, sinceMs + 9);
    assert.deepEqual(
      ended.map(({ id }) => id),
      ["late"],
    );
    assert.deepEqual(
      (await directory.appPasswordsOf(ALICE)).map(({ id }) => id),
      ["early", "never"],
    );
    assert.equal((await directory.appPasswordsOf(BOB)).length, 1);
    assert.deepEqual((await directory.revocations()).credentials, [
      { credential: "app:late", owner: ALICE, atMs: sinceMs + 9 },
    ]);
  });

  contract("a browser's session is kept once, and ends alone or with its person's others", async (store) => {
    const { directory } = store;
    for (const id of ["a", "b", "c"]) await directory.addDoorSession(doorSession(id, ALICE));
    await directory.addDoorSession(doorSession("d", BOB));
    await refused("TOKEN_REJECTED", directory.addDoorSession(doorSession("a", ALICE)));
    const again = await store.reopen();
    assert.deepEqual(await again.findDoorSession("a"), doorSession("a", ALICE));
    await again.noteDoorSessionUse("a", "d2", 9);
    assert.equal((await again.findDoorSession("a"))?.lastUsedMs, 9);
    assert.deepEqual(await again.endDoorSessions(BOB, ["a"], 10), []);
    assert.deepEqual(
      (await again.endDoorSessions(ALICE, ["a"], 10)).map(({ id }) => id),
      ["a"],
    );
    // What has ended is not opened again by the same sign-in.
    await refused("TOKEN_REJECTED", again.addDoorSession(doorSession("a", ALICE)));
    assert.equal((await again.endDoorSessions(ALICE, undefined, 11)).length, 2);
    assert.equal(await again.findDoorSession("b"), undefined);
    assert.ok((await again.findDoorSession("d")) !== undefined);
    assert.deepEqual((await again.revocations()).credentials, [
      { credential: "browser:a", owner: ALICE, atMs: 10 },
      { credential: "browser:b", owner: ALICE, atMs: 11 },
      { credential: "browser:c", owner: ALICE, atMs: 11 },
    ]);
    assert.deepEqual(await again.appPasswordsOf(ALICE), []);
  });

  contract("a user's sessions are listed with what is known of each, and some of them end", async (store) => {
    const { directory } = store;
    assert.deepEqual(await directory.doorSessionsOf(ALICE), []);
    const known = { address: "198.51.100.7", browser: "Firefox 145 on Linux" };
    // One from before the address was kept has neither.
    const kept = [doorSession("c", ALICE), doorSession("a", ALICE, known), doorSession("b", ALICE, known)];
    for (const session of [...kept, doorSession("d", BOB, known)]) await directory.addDoorSession(session);
    const again = await store.reopen();
    assert.deepEqual(await again.doorSessionsOf(ALICE), kept);
    // A use keeps what is known.
    await again.noteDoorSessionUse("a", "d2", 9);
    assert.deepEqual((await again.doorSessionsOf(ALICE))[1], {
      ...doorSession("a", ALICE, known),
      lastUsedMs: 9,
      doors: { d1: 1, d2: 9 },
    });
    assert.deepEqual(await again.endDoorSessions(ALICE, [], 10), []);
    const ended = await again.endDoorSessions(ALICE, ["a", "c", "d", "unknown"], 10);
    assert.deepEqual(
      ended.map(({ id }) => id),
      ["c", "a"],
    );
    assert.deepEqual(await again.doorSessionsOf(ALICE), [doorSession("b", ALICE, known)]);
    assert.equal((await again.doorSessionsOf(BOB)).length, 1);
    assert.deepEqual((await again.revocations()).credentials, [
      { credential: "browser:c", owner: ALICE, atMs: 10 },
      { credential: "browser:a", owner: ALICE, atMs: 10 },
    ]);
  });

  contract(
    "one session too many ends the oldest, and a door that was taken over ends its own",
    async ({ directory }) => {
      for (let at = 0; at <= DOOR_SESSIONS_PER_PERSON; at++)
        await directory.addDoorSession(
          doorSession(`s${at}`, ALICE, { createdMs: at + 1, doors: { d1: 2 * USE_NOTED_EVERY_MS } }),
        );
      assert.equal(await directory.findDoorSession("s0"), undefined);
      assert.ok((await directory.findDoorSession("s1")) !== undefined);
      await directory.addDoorSession(doorSession("other", BOB, { doors: { d2: 1 } }));
      assert.deepEqual(await directory.revokeUsedAtDoor("d1", 2 * USE_NOTED_EVERY_MS, 500), []);
      assert.equal(await directory.findDoorSession("s1"), undefined);
      assert.ok((await directory.findDoorSession("other")) !== undefined);
    },
  );
}
