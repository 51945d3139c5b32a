// The bytes read of each connection in a turn of the event loop.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { READ_BYTES_PER_TURN, READ_BYTES_PER_TURN_MIN } from "#wire/framing/limits.ts";
import { type ReadLane, ReadScheduler } from "./read-scheduler.ts";

interface TrialLane extends ReadLane {
  isHeld: boolean;
}

const newLane = (): TrialLane => ({
  readBytes: 0,
  readTurn: 0,
  isHeld: false,
  hold() {
    assert.equal(this.isHeld, false);
    this.isHeld = true;
  },
  release() {
    assert.equal(this.isHeld, true);
    this.isHeld = false;
  },
});

test("a connection that is alone is read without an end", async () => {
  const turns = new ReadScheduler();
  const lane = newLane();
  for (let turn = 0; turn < 3; turn++) {
    turns.took(lane, 10 * READ_BYTES_PER_TURN);
    assert.equal(lane.isHeld, false);
    await nextTurn();
  }
});

test("of two each is read up to half of a turn's bytes, and on in the next turn", async () => {
  const turns = new ReadScheduler();
  const [bulky, small] = [newLane(), newLane()];
  turns.took(small, 100);
  turns.took(bulky, READ_BYTES_PER_TURN / 2 - 1);
  assert.equal(bulky.isHeld, false);
  turns.took(bulky, 1);
  assert.equal(bulky.isHeld, true);
  // Bytes of the reading under way.
  turns.took(bulky, READ_BYTES_PER_TURN);
  await nextTurn();
  assert.equal(bulky.isHeld, false);
  // The other connection was active a moment ago.
  turns.took(bulky, READ_BYTES_PER_TURN / 2);
  assert.deepEqual([bulky.isHeld, small.isHeld], [true, false]);
  await nextTurn();
  turns.took(bulky, READ_BYTES_PER_TURN);
  assert.equal(bulky.isHeld, false);
});

test("however many there are, each brings something worth reading", async () => {
  const turns = new ReadScheduler();
  const lanes = Array.from({ length: 200 }, newLane);
  for (const lane of lanes) turns.took(lane, READ_BYTES_PER_TURN_MIN - 1);
  assert.equal(lanes.filter(({ isHeld }) => isHeld).length, 0);
  for (const lane of lanes) turns.took(lane, 1);
  assert.equal(lanes.filter(({ isHeld }) => isHeld).length, 200);
  await nextTurn();
  assert.equal(lanes.filter(({ isHeld }) => isHeld).length, 0);
});
