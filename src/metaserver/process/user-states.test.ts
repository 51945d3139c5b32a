// Decisions about users at MetaServers: the right to them, their refusals, and their exchange with nodes.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { digestOfStates, type UserState } from "#base/user-state.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { StatusError } from "#wire/framing/status.ts";
import { as, nodeMessage, startForTest } from "./meta-server.fixture.ts";
import { USER_STATES_LOOK_INTERVAL_MS, UserStateGate, type UserStateGateDeps } from "./user-state-gate.ts";

const HASH = createHash("sha256").update("correct horse").digest("hex");
const BY_PASSWORD = { metadata: { "x-admin-password-hash": HASH } };
const ENV = { SVC_ADMIN_EMAIL: "admin@example.com", ADMIN_PASSWORD_HASH: HASH };
const LOCK = { username: "leaver@example.com", disabled: true, reason: "has left" };

async function reasonOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "OK";
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error));
    return error.metadata.get("svc-reason") ?? "";
  }
}

function state(username: string, facts: Partial<UserState> = {}): UserState {
  return {
    username,
    disabled: true,
    closesShares: false,
    version: 1,
    reason: "has left",
    setBy: "administrator",
    setAtMs: 1,
    tokensFromMs: 0,
    issuer: "",
    subject: "",
    ...facts,
  };
}

test("who is locked out gets no routes, and no node gets a root for them, until let in again", async (t) => {
  const meta = await startForTest(t, { env: ENV });
  const client = meta.connect();
  const { epoch } = await client.registerFileServer(nodeMessage("a"));
  await client.getRoots({}, as("leaver@example.com"));
  const kept = await client.keepUserState({ state: LOCK }, BY_PASSWORD);
  assert.deepEqual([kept.applied, kept.state?.setBy, kept.state?.disabled], [true, "administrator", true]);
  const calls = [
    () => client.getRoots({}, as("leaver@example.com")),
    () => client.navigate({ path: "/" }, as("leaver@example.com")),
    () => client.claimRoot({ fsId: "a", epoch, username: "leaver@example.com" }),
  ];
  for (const call of calls) assert.equal(await reasonOf(call()), "USER_DISABLED");
  await client.getRoots({}, as("other@example.com"));
  await client.keepUserState({ state: { ...LOCK, disabled: false } }, as("admin@example.com"));
  for (const call of calls) assert.equal(await reasonOf(call()), "OK");
});

test("administrators alone see nodes and decisions: by a password that was set, or as SVC_ADMIN_EMAIL", async (t) => {
  const meta = await startForTest(t, { env: ENV });
  const bare = await startForTest(t);
  const client = meta.connect();
  await client.registerFileServer(nodeMessage("a"));
  const wrong = { metadata: { "x-admin-password-hash": "0".repeat(64) } };
  const byDefault = createHash("sha256").update("admin").digest("hex");
  for (const options of [{}, wrong, as("user@example.com")]) {
    assert.equal(await reasonOf(client.listFileServers({}, options)), "NOT_ADMIN");
    assert.equal(await reasonOf(client.getUserStates({}, options)), "NOT_ADMIN");
    assert.equal(await reasonOf(client.keepUserState({ state: LOCK }, options)), "NOT_ADMIN");
  }
  const closed = bare.connect().listFileServers({}, { metadata: { "x-admin-password-hash": byDefault } });
  await assert.rejects(closed, /set ADMIN_PASSWORD_HASH or SVC_ADMIN_EMAIL for it too/);
  for (const options of [BY_PASSWORD, as("admin@example.com")]) {
    const { servers } = await client.listFileServers({}, options);
    assert.deepEqual(
      servers.map(({ fsId, address, live }) => [fsId, address, live]),
      [["a", "a.example.com:50051", true]],
    );
  }
  const own = { ...LOCK, username: "admin@example.com" };
  assert.equal(await reasonOf(client.keepUserState({ state: own }, as("admin@example.com"))), "BAD_ARGUMENT");
});

test("a node and the store give each other what the other lacks, and the higher version stays", async (t) => {
  const meta = await startForTest(t, { env: ENV });
  const client = meta.connect();
  const { epoch } = await client.registerFileServer(nodeMessage("a"));
  await client.keepUserState({ state: { ...LOCK, version: 50n } }, BY_PASSWORD);
  const beat = (digest: string) => client.heartbeat({ fsId: "a", epoch, userStatesDigest: digest });
  assert.equal((await beat(digestOfStates([]))).userStatesDiffer, true);
  assert.equal((await client.heartbeat({ fsId: "a", epoch })).userStatesDiffer, false);
  const message = (username: string, version: bigint, disabled: boolean) => ({
    ...LOCK,
    username,
    version,
    disabled,
    setBy: "administrator",
  });
  const answer = await client.exchangeUserStates({
    fsId: "a",
    epoch,
    states: [message("leaver@example.com", 49n, false), message("second@example.com", 1n, true)],
  });
  assert.deepEqual(
    answer.states.map(({ username, version, disabled }) => [username, version, disabled]),
    [
      ["leaver@example.com", 50n, true],
      ["second@example.com", 1n, true],
    ],
  );
  assert.equal(await reasonOf(client.getRoots({}, as("second@example.com"))), "USER_DISABLED");
  const known = await meta.directory.userStates();
  assert.equal((await beat(digestOfStates(known))).userStatesDiffer, false);
});

test("what another MetaServer has put into the store holds at the next look, for the person that the store knows too", async (t) => {
  const folder = scratchFolder("metaserver-");
  const meta = await startForTest(t, { store: `sqlite:${join(folder, "one.db")}` });
  const client = meta.connect();
  await client.registerFileServer(nodeMessage("a"));
  await meta.directory.admitSubject("leaver@example.com", { issuer: "idp.example.com", subject: "42" });
  const [put] = await meta.directory.putUserStates([state("leaver@example.com")]);
  assert.deepEqual([put?.issuer, put?.subject], ["idp.example.com", "42"]);
  await meta.directory.admitSubject("free@example.com", { issuer: "idp.example.com", subject: "43" });
  const [free] = await meta.directory.putUserStates([state("free@example.com", { disabled: false })]);
  assert.equal(free?.subject, "");
  meta.clock.advance(USER_STATES_LOOK_INTERVAL_MS);
  while ((await reasonOf(client.getRoots({}, as("leaver@example.com")))) === "OK") {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(await reasonOf(client.getRoots({}, as("leaver@example.com"))), "USER_DISABLED");
});

test("the store keeps the latest decision about each user, and its mark moves with them alone", async (t) => {
  const folder = scratchFolder("metaserver-");
  const { clock } = await startForTest(t);
  const directory = await openDirectory(`sqlite:${join(folder, "m.db")}`, { clock });
  t.after(() => directory.close());
  assert.equal(await directory.userStatesMark(), "");
  await directory.putUserStates([state("b@example.com", { version: 5 }), state("a@example.com")]);
  const mark = await directory.userStatesMark();
  await directory.putUserStates([state("b@example.com", { version: 4, disabled: false })]);
  assert.equal(await directory.userStatesMark(), mark);
  await directory.putUserStates([state("b@example.com", { version: 6, disabled: false })]);
  assert.notEqual(await directory.userStatesMark(), mark);
  const kept = await directory.userStates();
  assert.deepEqual(
    kept.map(({ username, version, disabled }) => [username, version, disabled]),
    [
      ["a@example.com", 1, true],
      ["b@example.com", 6, false],
    ],
  );
});

test("a root that is handed over is found by both users, until it is ended", async (t) => {
  const meta = await startForTest(t, { env: ENV });
  const client = meta.connect();
  await client.registerFileServer(nodeMessage("a"));
  const [owner, heir] = ["leaver@example.com", "heir@example.com"];
  for (const user of [owner, heir]) await client.getRoots({}, as(user));
  const way = () => client.navigate({ root: owner, path: "/" }, as(heir));
  assert.equal(await reasonOf(way()), "NOT_SHARED");
  const untilMs = BigInt(meta.clock.wallMs() + 60_000);
  const handOvers = [{ to: heir, reason: "has left", untilMs }];
  const state = { ...LOCK, handOvers };
  await client.keepUserState({ state }, BY_PASSWORD);
  assert.equal((await way()).fsId, "a");
  const rows = async (user: string) =>
    (await client.getRoots({}, as(user))).roots.map((root) => [root.owner, root.path, root.handOvers.length]);
  assert.deepEqual(await rows(heir), [
    [heir, "/", 0],
    [owner, "/", 1],
  ]);
  await client.keepUserState({ state: { ...state, disabled: false, reason: "" } }, BY_PASSWORD);
  assert.deepEqual(await rows(owner), [[owner, "/", 1]]);
  await client.keepUserState({ state: { ...LOCK, handOvers: [] } }, BY_PASSWORD);
  assert.equal(await reasonOf(way()), "NOT_SHARED");
  await client.keepUserState({ state }, BY_PASSWORD);
  meta.clock.advance(60_000);
  assert.equal(await reasonOf(way()), "NOT_SHARED");
  assert.deepEqual(await rows(heir), [[heir, "/", 0]]);
});

test("a store that has lost all decisions gets them back in slices, also over a failure between two", async () => {
  const clock = new ManualClock();
  const stored = new Map<string, UserState>();
  const slices: number[] = [];
  let fails = 1;
  const directory: UserStateGateDeps["directory"] = {
    putUserStates: async (states) => {
      slices.push(states.length);
      if (slices.length === 3 && fails-- > 0) throw new GroveError("STORE_UNAVAILABLE", "away");
      for (const one of states) stored.set(one.username, one);
      return Promise.resolve([...states]);
    },
    userStates: () => Promise.resolve([...stored.values()]),
    userStatesMark: () => Promise.resolve(`mark ${stored.size}`),
  };
  const gate = new UserStateGate({ directory, clock, log: silentLogger });
  const states = Array.from({ length: 550 }, (_, at) => state(`u${at}@example.com`));
  gate.states.take(states);
  for (let look = 0; look < 3; look++) await gate.look();
  gate.stop();
  assert.equal(stored.size, 550);
  assert.deepEqual(slices, [200, 200, 150, 150]);
});
