// Locked users in the list: own decisions show at once, those of another console at the next read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ADDRESS_REREAD_INTERVAL_MS } from "#base/limits.ts";
import { silentLogger } from "#base/log.ts";
import type { UserState } from "#base/user-state.ts";
import { userList } from "#wire/webapi/user.ts";
import { nodeReading, testCluster } from "./cluster-state.fixture.ts";
import { DecidedUsers } from "./decided-users.ts";
import { HomeNodes } from "./home-nodes.ts";
import { UserList } from "./user-list.ts";
import { usersQuery } from "./user-query.ts";

const lock = (username: string, disabled: boolean, version: number): UserState => ({
  username,
  disabled,
  closesShares: false,
  version,
  reason: "has left",
  setBy: "administrator",
  setAtMs: 1,
  tokensFromMs: 0,
  issuer: "",
  subject: "",
});

/** A list of three users, and the store's answers about decisions. */
function startList() {
  const { clusterState, clock } = testCluster("a");
  const told = { states: (): Promise<UserState[]> => Promise.resolve([]) };
  const decided = new DecidedUsers({
    clock,
    log: silentLogger,
    directory: { userStates: () => told.states() },
  });
  const directory = { listRoots: () => Promise.resolve([]) };
  const homes = new HomeNodes({ clock, log: silentLogger, directory });
  const users = new UserList({ clock, cluster: clusterState, homes, decided, fullInDays: () => undefined });
  clusterState.answered(
    "a",
    nodeReading({ perUserStorage: new Map(["dave@x", "eve@x", "zoe@x"].map((name) => [name, 1n])) }),
  );
  const rows = async (query: object) =>
    userList.parse(JSON.parse(String(await users.page(usersQuery.parse(query))))).users;
  const names = async (query: object = {}) => (await rows(query)).map(({ username }) => username);
  const isLocked = async (name: string) => (await rows({ q: name }))[0]?.locked;
  return { clock, told, decided, users, names, isLocked };
}

test("who is locked out is marked, and can be listed alone", async () => {
  const { clock, told, decided, users, names, isLocked } = startList();
  told.states = () => Promise.resolve([lock("eve@x", true, 5)]);
  assert.deepEqual([await isLocked("dave@x"), await isLocked("eve@x")], [false, true]);
  assert.deepEqual(await names({ locked: "true" }), ["eve@x"]);
  decided.decide(lock("dave@x", true, 6));
  assert.deepEqual(await names({ locked: "true" }), ["dave@x", "eve@x"]);
  assert.deepEqual(await names({ locked: "true", q: "DAVE" }), ["dave@x"]);
  assert.equal(users.kept(usersQuery.parse({ locked: "true" }))?.body.includes("dave@x"), true);
  told.states = () => Promise.resolve([lock("eve@x", false, 7)]);
  clock.advance(ADDRESS_REREAD_INTERVAL_MS);
  await names();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(await names({ locked: "true" }), ["dave@x"]);
  assert.equal((await names()).length, 3);
});

test("while the store does not answer the list shows what was decided here", async () => {
  const { told, decided, isLocked } = startList();
  told.states = () => Promise.reject(new Error("away"));
  assert.equal(await isLocked("dave@x"), false);
  decided.decide(lock("dave@x", true, 1));
  assert.equal(await isLocked("dave@x"), true);
});
