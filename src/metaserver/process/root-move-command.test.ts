// `grove root move` on the command line, beside the MetaServer that has the store open.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NODE_LEASE_MS } from "#base/limits.ts";
import type { RootMove } from "#metaserver/directory/root-move.ts";
import { until } from "#testing/until.ts";
import { settled } from "./root-move-command.ts";
import { openStoreUnderCommands } from "./store-command.fixture.ts";

const TIMEOUT = { timeout: 120_000 };
const ADA = "ada@example.com";

test("a move is begun, shown, and confirmed once its root has switched", TIMEOUT, async (t) => {
  const { directory, register, step, switchOver, grove, started } = await openStoreUnderCommands(t);
  await register("n1", [ADA]);
  await register("n2");
  const begun = await started(["root", "move", "Ada@Example.com", "-to", "n2"]);
  assert.equal(begun.code, 0, begun.err);
  assert.equal(begun.out, `${ADA}: n1 → n2: copying, 0 B and 0 rows copied, 0 parts left\n`);
  const [move] = await directory.rootMoves();
  assert.ok(move !== undefined);
  const problem = "there is no room here for 7 bytes above the reserve";
  await step(move, { step: "progress", bytes: 2_097_152, rows: 12, left: 3, problem });
  const shown = await grove(["root", "move", ADA, "-status"]);
  assert.equal(
    shown.out,
    `${ADA}: n1 → n2: copying, 2 MiB and 12 rows copied, 3 parts left; waits: ${problem}\n`,
  );
  const early = await grove(["root", "move", ADA, "-confirm"]);
  assert.notEqual(early.code, 0);
  assert.match(early.err, /has not moved yet \(copying\)/);
  await switchOver(ADA);
  const late = await grove(["root", "move", ADA, "-undo"]);
  assert.notEqual(late.code, 0);
  assert.match(late.err, /lives on n2 by now, with what has changed since: confirm the move/);
  const waited = await grove(["root", "move", ADA, "-to", "n2", "-wait"]);
  assert.match(
    waited.out,
    /lives on n2 now; n1 keeps its copy until you confirm: grove root move ada@example\.com -confirm\n$/,
  );
  const confirmed = await grove(["root", "move", ADA, "-confirm"]);
  assert.equal(confirmed.out, `${ADA}: n1 → n2: confirmed; n1 removes its copy\n`);
});

test(
  "-wait fails when the move was undone, also when nothing is left of it, and not when it was confirmed",
  TIMEOUT,
  async (t) => {
    const { directory, register, switchOver, grove, end } = await openStoreUnderCommands(t);
    await register("n1", [ADA]);
    await register("n2");
    const decided = async (decision: "confirm" | "undo"): ReturnType<typeof grove> => {
      const waiting = grove(["root", "move", ADA, "-to", "n2", "-wait"]);
      await until(async () => (await directory.rootMoves()).length === 1);
      if (decision === "confirm") await switchOver(ADA);
      await directory.decideMove(ADA, decision);
      await end(ADA);
      return waiting;
    };
    const undone = await decided("undo");
    assert.notEqual(undone.code, 0);
    assert.match(undone.err, /the root of ada@example\.com stays on n1: its move was undone/);
    const confirmed = await decided("confirm");
    assert.equal(confirmed.code, 0, confirmed.err);
  },
);

test(
  "-wait waits for a move that has begun before, and is refused where it has none to wait for",
  TIMEOUT,
  async (t) => {
    const { directory, register, switchOver, grove } = await openStoreUnderCommands(t);
    await register("n1", [ADA]);
    await register("n2");
    await grove(["root", "move", ADA, "-to", "n2"]);
    let isOver = false;
    const waiting = grove(["root", "move", ADA, "-wait"]).finally(() => {
      isOver = true;
    });
    const looks = (): Promise<unknown> => grove(["root", "move", ADA]);
    await looks();
    assert.equal(isOver, false);
    await switchOver(ADA);
    assert.match((await waiting).out, /lives on n2 now/);
    assert.equal((await directory.rootMoves())[0]?.state, "switched");
    for (const words of [["-wait"], [ADA, "-confirm", "-wait"]])
      assert.match((await grove(["root", "move", ...words])).err, /-wait waits for one user's move/);
  },
);

test("-wait tells once what a move waits for", async () => {
  const begun = { moveId: "m1", owner: ADA, target: "n2", state: "copying", problem: "n2 has no room" };
  const seen = [begun, { ...begun, state: "switched" }] as unknown as RootMove[];
  const store = { rootMoves: async () => seen.splice(0, 1), listRoots: async () => [] };
  const told: string[] = [];
  const last = await settled(store, seen[0] as RootMove, (problem) => told.push(problem));
  assert.equal(last.state, "switched");
  assert.deepEqual(told, ["n2 has no room"]);
});

test("the document has every field of a move but its secret", TIMEOUT, async (t) => {
  const { directory, register, grove } = await openStoreUnderCommands(t);
  await register("n1", [ADA]);
  await register("n2");
  await grove(["root", "move", ADA, "-to", "n2"]);
  const { out } = await grove(["root", "move", "-json"]);
  const [{ started_ms, changed_ms, ...document }] = JSON.parse(out) as [Record<string, unknown>];
  assert.deepEqual(document, {
    owner: ADA,
    source: "n1",
    target: "n2",
    state: "copying",
    attempt: 0,
    bytes: 0,
    rows: 0,
    left: 0,
    problem: "",
  });
  assert.ok(Number(started_ms) <= Number(changed_ms));
  assert.ok(!out.includes((await directory.rootMoves())[0]?.secret ?? out));
});

test("an undone move, unknown users and nodes, and two wishes at once say so", TIMEOUT, async (t) => {
  const { register, grove } = await openStoreUnderCommands(t);
  await register("n1", [ADA]);
  await register("n2");
  await grove(["root", "move", ADA, "-to", "n2"]);
  const undone = await grove(["root", "move", ADA, "-undo"]);
  assert.equal(undone.out, `${ADA}: n1 → n2: undone; n2 removes what has come\n`);
  const refusals: readonly (readonly [readonly string[], RegExp])[] = [
    [["bob@example.com", "-to", "n2"], /bob@example\.com has no root/],
    [[ADA, "-to", "n9"], /under a move to n2 already \(undone\)/],
    [[ADA, "-to", "n2", "-confirm"], /give one of -to, -status, -confirm, -undo and -take_back/],
    [["-confirm"], /say whose root/],
    [["bob@example.com", "-confirm"], /is under no move/],
  ];
  for (const [words, expected] of refusals) {
    const { code, err } = await grove(["root", "move", ...words]);
    assert.notEqual(code, 0, words.join(" "));
    assert.match(err, expected);
  }
});

test(
  "where the new node is lost the kept copy is taken back, once that was asked; node remove names it before",
  TIMEOUT,
  async (t) => {
    const { directory, clock, register, switchOver, grove } = await openStoreUnderCommands(t);
    await register("n1", [ADA]);
    await register("n2");
    const begun = await grove(["root", "move", ADA, "-to", "n2"]);
    assert.equal(begun.code, 0, begun.err);
    assert.match((await grove(["root", "move", ADA, "-take_back"])).err, /n1 keeps no copy .* \(copying\)/);
    await switchOver(ADA);
    const runs = await grove(["root", "move", ADA, "-take_back"], "yes\n");
    assert.match(runs.err, /n2 runs, and has the root of ada@example\.com: confirm the move/);
    clock.jumpWall(-NODE_LEASE_MS - 1_000);
    await register("n2");
    clock.jumpWall(NODE_LEASE_MS + 1_000);
    const lost = await grove(["root", "move", ADA, "-confirm"]);
    assert.match(
      lost.err,
      /n2 does not run, and has the root of ada@example\.com: look at the root there first/,
    );
    const held = await grove(["node", "remove", "n2"]);
    assert.notEqual(held.code, 0);
    assert.match(
      held.err,
      /n1 keeps a copy of the root of ada@example\.com from before .* UTC\. To serve that: grove root move ada@example\.com -take_back/,
    );
    assert.match(
      held.err,
      /Of 1 root the former node keeps a copy, which grove root move USER -take_back serves again/,
    );
    const refused = await grove(["root", "move", ADA, "-take_back"], "no\n");
    assert.notEqual(refused.code, 0);
    assert.equal((await directory.findRoot(ADA))?.fsId, "n2");
    const taken = await grove(["root", "move", ADA, "-take_back"], "yes\n");
    assert.equal(taken.code, 0, taken.err);
    assert.match(taken.err, /What ada@example\.com has stored on n2 since is lost/);
    assert.equal(taken.out, `${ADA}: n1 → n2: taken back; n1 serves its copy again\n`);
    assert.equal((await directory.findRoot(ADA))?.fsId, "n1");
    const again = await grove(["root", "move", ADA, "-take_back"]);
    assert.equal(again.code, 0, again.err);
    const early = await grove(["root", "move", ADA, "-to", "n2"]);
    assert.match(early.err, /under a move to n2 already \(returned\)/);
    assert.equal((await grove(["node", "remove", "n2"])).code, 0);
  },
);
