// Tests of a source: a freeze goes with the root where another process takes that, and what a backup brought back departs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import type { LocalMove, MovedRootHead, RootMoveStorage } from "#storage/contract/root-move.ts";
import type { NodeMove } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import type { KnownMoves } from "./known-moves.ts";
import { MoveSource } from "./move-source.ts";

const [OWNER, MOVE_ID] = ["ann@example.com", "01MOVE"];
const MOVE = { moveId: MOVE_ID, owner: OWNER, state: "frozen", attempt: 1 } as NodeMove;
const LOCAL: LocalMove = { moveId: MOVE_ID, owner: OWNER, state: "frozen", number: 7, address: "", head: "" };

test("a root that was frozen here and taken by another process is not frozen when it comes back", async () => {
  const clock = new ManualClock();
  let locals: readonly LocalMove[] = [LOCAL];
  const moves: Partial<RootMoveStorage> = {
    list: () => locals,
    isShut: () => false,
    freeze: async () => ({}) as MovedRootHead,
  };
  const known: Partial<KnownMoves> = { ask: async () => [MOVE], find: () => MOVE };
  const source = new MoveSource({
    moves: moves as RootMoveStorage,
    known: known as KnownMoves,
    propertiesOf: () => ({ quotaBytes: "1", inodeLimit: 1 }),
    isServed: () => false,
    onDeparted: () => undefined,
    forgetProperties: async () => undefined,
    onReturned: () => undefined,
    audit: () => undefined,
    hurry: () => undefined,
    clock,
    log: silentLogger,
  });
  await source.freeze(MOVE, 1);
  assert.equal(source.isFrozen(OWNER), true);
  // The process that holds the root has its move; the store tells this process of it no more.
  locals = [];
  clock.advance(60_000);
  assert.equal(source.isFrozen(OWNER), false);
  source.returned(OWNER);
  assert.equal(source.isFrozen(OWNER), false);
});

for (const isOwnFolder of [true, false]) {
  const what = isOwnFolder
    ? "departs from a node's own folder"
    : "is served on an engine that processes share";
  test(`a root that is here again after its switch ${what}`, async () => {
    const done: string[] = [];
    const noted = (step: string) => async (): Promise<never> => void done.push(step) as never;
    const moves: Partial<RootMoveStorage> = {
      isOwnFolder,
      list: () => [],
      beginExport: async () => {
        done.push("beginExport");
        return { ...LOCAL, state: "copying" };
      },
      freeze: noted("freeze"),
      depart: noted("depart"),
    };
    const source = new MoveSource({
      moves: moves as RootMoveStorage,
      known: {} as KnownMoves,
      propertiesOf: () => ({ quotaBytes: "1", inodeLimit: 1 }),
      isServed: () => true,
      onDeparted: () => undefined,
      forgetProperties: async () => undefined,
      onReturned: () => undefined,
      audit: () => undefined,
      hurry: () => undefined,
      clock: new ManualClock(),
      log: silentLogger,
    });
    await source.follow({ ...MOVE, state: "switched", otherAddress: "n2:50051" });
    assert.deepEqual(done, isOwnFolder ? ["beginExport", "freeze", "depart"] : []);
    assert.equal(source.addressOf(OWNER), "n2:50051");
  });
}
