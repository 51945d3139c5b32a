// `grove node drain` on the command line, beside the MetaServer that has the store open.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { until } from "#testing/until.ts";
import { GIB, openStoreUnderCommands } from "./store-command.fixture.ts";

const TIMEOUT = { timeout: 180_000 };
const [ADA, BOB, CAROL] = ["ada@example.com", "bob@example.com", "carol@example.com"];
const SIZES = [
  { owner: ADA, bytes: 3 * Number(GIB) },
  { owner: BOB, bytes: 2 * Number(GIB) },
];

test(
  "a drain shows its plan, asks, moves all roots, and the node can be removed once that is confirmed",
  TIMEOUT,
  async (t) => {
    const { directory, clock, register, actAsNodes, grove, started } = await openStoreUnderCommands(t);
    await register("n1", [ADA, BOB]);
    await register("n2", [CAROL]);
    await register("n3");
    actAsNodes({ n1: SIZES, n2: [{ owner: CAROL, bytes: 7 }], n3: [] });
    const plan = await grove(["node", "drain", "n1", "-plan"]);
    assert.equal(plan.code, 0, plan.err);
    assert.equal(
      plan.out,
      `n1 → n3: 1 root, 3 GiB\n  ${ADA}  3 GiB\nn1 → n2: 1 root, 2 GiB\n  ${BOB}  2 GiB\n`,
    );
    assert.deepEqual(await directory.drainedNodes(), []);
    for (const typed of ["", "no\n", "2\n"]) {
      const declined = await grove(["node", "drain", "n1"], typed);
      assert.notEqual(declined.code, 0);
      assert.match(declined.err, /Type yes to move 2 roots away from n1: .*nothing was begun/s);
    }
    assert.deepEqual([await directory.drainedNodes(), await directory.rootMoves()], [[], []]);
    const drained = await started(["node", "drain", "n1"], "yes\n");
    assert.equal(drained.code, 0, drained.err);
    assert.match(drained.out, /ada@example\.com lives on n3 now\./);
    assert.match(drained.out, /bob@example\.com lives on n2 now\./);
    assert.match(
      drained.out,
      /n1 has no roots left, and keeps copies of 2 roots\..*: grove node drain n1 -confirm\n$/,
    );
    assert.equal((await directory.locateRoot("new@example.com")).fsId === "n1", false);
    // Its last heartbeat becomes one of before.
    clock.jumpWall(-NODE_LEASE_MS - 1_000);
    await register("n1");
    clock.jumpWall(NODE_LEASE_MS + 1_000);
    const early = await grove(["node", "remove", "n1"]);
    assert.notEqual(early.code, 0);
    assert.match(
      early.err,
      /n1 keeps a copy of the root of ada@example\.com.*grove node drain n1 -confirm for all/,
    );
    const confirmed = await grove(["node", "drain", "n1", "-confirm"]);
    assert.match(
      confirmed.out,
      /^n1 does not run, and removes its copies of 2 roots once it does\.\nTo take it out.*grove node remove n1\n$/,
    );
    const removed = await grove(["node", "remove", "n1"]);
    assert.equal(removed.code, 0, removed.err);
  },
);

test(
  "the only copy of a root whose new node does not run is not confirmed away; others are",
  TIMEOUT,
  async (t) => {
    const { directory, clock, register, switchOver, grove } = await openStoreUnderCommands(t);
    await register("n1", [ADA, BOB]);
    for (const id of ["n2", "n3"]) await register(id);
    for (const [owner, target] of [
      [ADA, "n2"],
      [BOB, "n3"],
    ] as const) {
      await directory.beginMove({ owner, target });
      await switchOver(owner);
    }
    clock.jumpWall(-NODE_LEASE_MS - 1_000);
    await register("n3", [BOB]);
    clock.jumpWall(NODE_LEASE_MS + 1_000);
    const confirmed = await grove(["node", "drain", "n1", "-confirm"]);
    assert.notEqual(confirmed.code, 0);
    assert.match(
      confirmed.err,
      /1 of 2 moves were confirmed: n3 does not run, and has the root of bob@example\.com/,
    );
    const states = (await directory.rootMoves()).map(({ owner, state }) => [owner, state]);
    assert.deepEqual(states, [
      [ADA, "confirmed"],
      [BOB, "switched"],
    ]);
  },
);

test("a drain goes on where it was cut, and asks no second time", TIMEOUT, async (t) => {
  const { directory, register, actAsNodes, grove } = await openStoreUnderCommands(t);
  await register("n1", [ADA, BOB]);
  await register("n2");
  await directory.setDrained("n1", true);
  await directory.beginMove({ owner: ADA, target: "n2" });
  actAsNodes({ n1: SIZES, n2: [] });
  const again = await grove(["node", "drain", "n1"]);
  assert.equal(again.code, 0, again.err);
  assert.match(again.out, /n1 has no roots left, and keeps copies of 2 roots/);
  const empty = await grove(["node", "drain", "n1", "-json"]);
  assert.deepEqual(JSON.parse(empty.out), {
    node: "n1",
    roots_left: 0,
    unconfirmed: [ADA, BOB],
    removing: 0,
  });
});

test(
  "a root whose move is undone in a drain goes where there is room then, and not to the full node again",
  TIMEOUT,
  async (t) => {
    const { directory, register, actAsNodes, switchOver, end, grove } = await openStoreUnderCommands(t);
    await register("n1", [ADA]);
    await register("n2", [], { diskFreeBytes: 600n * GIB });
    await register("n3");
    actAsNodes({ n1: SIZES.slice(0, 1), n2: [], n3: [] }, "wait");
    const drained = grove(["node", "drain", "n1", "-yes"]);
    const target = async (): Promise<string | undefined> => (await directory.rootMoves())[0]?.target;
    await until(async () => (await target()) === "n2", "the planned move");
    await register("n2", [], { diskFreeBytes: 20n * GIB });
    await directory.decideMove(ADA, "undo");
    await end(ADA);
    await until(async () => (await target()) !== undefined, "the next move");
    assert.equal(await target(), "n3");
    await switchOver(ADA);
    const { code, out, err } = await drained;
    assert.equal(code, 0, err);
    assert.match(out, /ada@example\.com lives on n3 now\./);
  },
);

test("moves that wait for a full node keep no root from another one", TIMEOUT, async (t) => {
  const { directory, register, step, actAsNodes, switchOver, grove } = await openStoreUnderCommands(t);
  const waiting = ["w1@example.com", "w2@example.com", "w3@example.com", "w4@example.com"];
  await register("n1", [ADA, ...waiting]);
  await register("n2");
  await register("n3", [], { diskFreeBytes: 600n * GIB });
  for (const owner of waiting) {
    const move = await directory.beginMove({ owner, target: "n2" });
    await step(move, { step: "progress", bytes: 0, rows: 0, left: 0, problem: "there is no room here" });
  }
  actAsNodes({ n1: SIZES.slice(0, 1), n2: [], n3: [] }, "wait");
  const drained = grove(["node", "drain", "n1", "-yes"]);
  const begun = async (): Promise<string | undefined> =>
    (await directory.rootMoves()).find(({ owner }) => owner === ADA)?.target;
  await until(async () => (await begun()) === "n3", "the move to the other node");
  for (const owner of [ADA, ...waiting]) await switchOver(owner);
  const { code, err } = await drained;
  assert.equal(code, 0, err);
});

test("the end of a drain says what the node still has, and what is to be done then", TIMEOUT, async (t) => {
  const { register, actAsNodes, end, grove } = await openStoreUnderCommands(t);
  await register("n1", [ADA, BOB]);
  await register("n2");
  actAsNodes({ n1: SIZES, n2: [] });
  const nothing = await grove(["node", "drain", "n1", "-confirm"]);
  assert.equal(
    nothing.out,
    "No move away from n1 waits to be confirmed.\n2 roots still on n1: grove node drain n1 goes on.\n",
  );
  assert.equal((await grove(["node", "drain", "n1", "-yes"])).code, 0);
  const confirmed = await grove(["node", "drain", "n1", "-confirm"]);
  const whenRemoved =
    "Once it has \\(grove root move shows none of them\\), stop it, wait 30 s, and: grove node remove n1";
  assert.match(confirmed.out, new RegExp(`^n1 removes its copies of 2 roots\\.\\n${whenRemoved}\\n$`));
  // It has no roots, and is not empty before their copies have gone.
  const early = await grove(["node", "drain", "n1", "-yes"]);
  assert.match(
    early.out,
    new RegExp(`n1 has no roots left, and still removes its copies of 2 roots\\.\\n${whenRemoved}\\n$`),
  );
  for (const owner of [ADA, BOB]) await end(owner);
  const empty = await grove(["node", "drain", "n1", "-yes"]);
  assert.match(empty.out, /n1 is empty and gets no roots\. Stop it, wait 30 s, and: grove node remove n1\n$/);
});

test(
  "a drain within the shared engine ends without copies that would have to be removed",
  TIMEOUT,
  async (t) => {
    const { register, actAsNodes, grove } = await openStoreUnderCommands(t);
    await register("n1", [ADA], { onEngine: true });
    await register("n2", [], { onEngine: true });
    actAsNodes({ n1: SIZES.slice(0, 1), n2: [] });
    const drained = await grove(["node", "drain", "n1", "-yes"]);
    assert.match(
      drained.out,
      /n1 is empty and gets no roots\. Stop it, wait 30 s, and: grove node remove n1\n$/,
    );
  },
);

test("without room nothing is begun, and the roots and the missing bytes are named", TIMEOUT, async (t) => {
  const { directory, register, actAsNodes, grove } = await openStoreUnderCommands(t);
  await register("n1", [ADA, BOB]);
  await register("n2", [], { diskFreeBytes: 22n * GIB });
  actAsNodes({ n1: SIZES, n2: [] });
  const refused = await grove(["node", "drain", "n1", "-yes"]);
  assert.notEqual(refused.code, 0);
  assert.match(
    refused.err,
    /n1 was not drained: there is no room for 1 root\. ada@example\.com has 3 GiB, 1 GiB more than the roomiest node has left/,
  );
  assert.deepEqual([await directory.drainedNodes(), await directory.rootMoves()], [[], []]);
  const plan = await grove(["node", "drain", "n1", "-plan", "-json"]);
  assert.notEqual(plan.code, 0);
  assert.deepEqual(JSON.parse(plan.out), {
    node: "n1",
    sizes_known: true,
    moves: [{ owner: BOB, bytes: 2 * Number(GIB), source: "n1", target: "n2" }],
    without_room: [{ owner: ADA, bytes: 3 * Number(GIB), missing_bytes: Number(GIB) }],
  });
});

test("-back takes the mark away; what has begun is named, and the rest stays", TIMEOUT, async (t) => {
  const { directory, register, grove } = await openStoreUnderCommands(t);
  await register("n1", [ADA, BOB]);
  await register("n2");
  await directory.setDrained("n1", true);
  await directory.beginMove({ owner: ADA, target: "n2" });
  const taken = await grove(["node", "drain", "n1", "-back"]);
  assert.equal(taken.code, 0, taken.err);
  assert.match(taken.out, /^n1 gets new roots again.*\nOn their way, and going on: ada@example\.com\./);
  assert.deepEqual(await directory.drainedNodes(), []);
  assert.equal((await directory.rootMoves()).length, 1);
});

test("a node that does not run, unknown ones, and roots that come to it are refused", TIMEOUT, async (t) => {
  const { directory, clock, register, grove } = await openStoreUnderCommands(t);
  await register("n1", [ADA]);
  await register("n2");
  const unknown = await grove(["node", "drain", "n9"]);
  assert.match(unknown.err, /no FileServer has registered as n9/);
  await directory.beginMove({ owner: ADA, target: "n2" });
  const coming = await grove(["node", "drain", "n2"]);
  assert.match(coming.err, /roots are on their way to n2: ada@example\.com/);
  const two = await grove(["node", "drain", "n1", "-plan", "-back"]);
  assert.match(two.err, /give one of -plan, -confirm and -back/);
  clock.jumpWall(-NODE_LEASE_MS - 1_000);
  await register("n3", [BOB]);
  clock.jumpWall(NODE_LEASE_MS + 1_000);
  const away = await grove(["node", "drain", "n3"]);
  assert.match(away.err, /n3 does not run, and roots move from a node that runs/);
});

test(
  "a drain goes to nodes on the shared engine where it is told to, and from such a node to the others of the engine",
  TIMEOUT,
  async (t) => {
    const { directory, register, actAsNodes, grove } = await openStoreUnderCommands(t);
    await register("n1", [ADA]);
    await register("n2", [CAROL], { onEngine: true, diskFreeBytes: 900n * GIB });
    await register("n3");
    actAsNodes({ n1: SIZES.slice(0, 1), n2: [], n3: [] });
    const plan = await grove(["node", "drain", "n1", "-plan"]);
    assert.equal(plan.code, 0, plan.err);
    assert.equal(plan.out, `n1 → n3: 1 root, 3 GiB\n  ${ADA}  3 GiB\n`);
    assert.match(plan.err, /n2 serves roots of the shared engine, and this plan leaves it out: -to_engine/);
    const alone = await grove(["node", "drain", "n2", "-yes"]);
    assert.notEqual(alone.code, 0);
    assert.match(alone.err, /no other FileServer of the shared engine runs: start one, or stop n2/);
    assert.deepEqual(await directory.drainedNodes(), []);
    const there = await grove(["node", "drain", "n1", "-plan", "-to_engine"]);
    assert.deepEqual(
      [there.code, there.out, there.err],
      [0, `n1 → n2: 1 root, 3 GiB\n  ${ADA}  3 GiB\n`, ""],
    );
    await register("n4", [], { onEngine: true });
    const handed = await grove(["node", "drain", "n2", "-plan"]);
    assert.deepEqual([handed.code, handed.out.split(",")[0]], [0, "n2 → n4: 1 root"], handed.err);
    const away = await grove(["root", "move", CAROL, "-to", "n3"]);
    assert.equal(away.code, 0, away.err);
    await directory.setDrained("n4", true);
    await directory.setDrained("n2", true);
    const none = await grove(["node", "drain", "n1", "-yes", "-to_engine"]);
    assert.match(none.err, /no FileServer of the shared engine runs/);
    assert.deepEqual(await directory.drainedNodes(), ["n2", "n4"]);
  },
);
