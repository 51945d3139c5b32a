// Tests when the machine has room for one more process of tests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hasRoom, MACHINE, type Machine } from "./machine-room.ts";

/** A machine of two processors, busy for these ms while somebody looks at it. */
function machineOf(busyMsDuringLook: number, freeBytes: number): Machine {
  let busy = 5_000;
  return {
    busyMs: () => busy,
    processors: 2,
    freeBytes: () => freeBytes,
    wait: async () => {
      busy += busyMsDuringLook;
      return 1_000;
    },
  };
}

test("there is room below four fifths of all processors, with two GiB free", async () => {
  assert.equal(await hasRoom(machineOf(1_590, 2 ** 31 + 1)), true);
  assert.equal(await hasRoom(machineOf(1_600, 2 ** 31 + 1)), false);
  assert.equal(await hasRoom(machineOf(0, 2 ** 31)), false);
});

test("this machine counts the time of its processors", async () => {
  const before = MACHINE.busyMs();
  const begun = performance.now();
  // Spins, so that a processor is busy.
  while (performance.now() - begun < 300);
  const busy = MACHINE.busyMs() - before;
  assert.ok(busy > 100 && busy < (performance.now() - begun + 100) * MACHINE.processors, `${busy} ms`);
  assert.ok(MACHINE.freeBytes() > 0);
});
