// Maintenance windows: mutes, and their end 60 s after nodes answer again or at the limit (D7, D11).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { MAINTENANCE_WINDOWS_MAX, MaintenanceWindows } from "./maintenance-windows.ts";

const MINUTE_MS = 60_000;

function opened(limitMs = 10 * MINUTE_MS): { clock: ManualClock; windows: MaintenanceWindows; id: string } {
  const clock = new ManualClock();
  const windows = new MaintenanceWindows(clock);
  const id = windows.open({
    nodeIds: ["n1", "n2"],
    untilWallMs: clock.wallMs() + limitMs,
    reason: "restart",
  });
  return { clock, windows, id };
}

test("restarts, absences and errors of its nodes are muted; all else, and other nodes, are not", () => {
  const { windows } = opened();
  for (const type of ["service_restart", "node_offline", "error_spike"] as const) {
    assert.equal(windows.mutes(type, "n1"), true);
    assert.equal(windows.mutes(type, "n3"), false);
    assert.equal(windows.mutes(type, undefined), false);
  }
  assert.equal(windows.mutes("storage_warning", "n1"), false);
});

test("it ends at its limit, whatever its nodes do and however the wall clock jumps", () => {
  const { clock, windows } = opened();
  clock.advance(10 * MINUTE_MS - 1);
  clock.jumpWall(-3_600_000);
  windows.sawNode("n1", true);
  assert.equal(windows.mutes("node_offline", "n1"), true);
  clock.advance(1);
  assert.equal(windows.mutes("node_offline", "n1"), false);
  assert.deepEqual(windows.kept(), []);
});

test("once the action has ended, each node is muted until it has answered for 60 s without a gap", () => {
  const { clock, windows, id } = opened();
  windows.sawNode("n1", true);
  clock.advance(2 * MINUTE_MS);
  windows.close(id);
  windows.sawNode("n1", true);
  windows.sawNode("n2", true);
  assert.notEqual(windows.until("n1"), undefined, "answers during the action count for nothing");
  clock.advance(30_000);
  windows.sawNode("n2", false);
  clock.advance(30_000);
  windows.sawNode("n1", true);
  windows.sawNode("n2", true);
  assert.equal(windows.until("n1"), undefined);
  assert.notEqual(windows.until("n2"), undefined);
  clock.advance(59_999);
  windows.sawNode("n2", true);
  assert.notEqual(windows.until("n2"), undefined);
  clock.advance(1);
  windows.sawNode("n2", true);
  assert.equal(windows.until("n2"), undefined);
});

test("of two windows over a node the later end counts, and closing an unknown one does nothing", () => {
  const { clock, windows, id } = opened();
  const later = clock.wallMs() + 20 * MINUTE_MS;
  windows.open({ nodeIds: ["n1"], untilWallMs: later, reason: "reboot" });
  assert.equal(windows.until("n1"), later);
  windows.close("nothing");
  windows.close(id);
  assert.equal(windows.kept().length, 2);
});

test("a restart keeps what is left of each window (T14)", () => {
  const { clock, windows, id } = opened();
  clock.advance(MINUTE_MS);
  windows.close(id);
  const again = new MaintenanceWindows(clock);
  again.restore(windows.kept());
  assert.deepEqual(again.kept(), windows.kept());
  clock.advance(9 * MINUTE_MS - 1);
  assert.equal(again.mutes("node_offline", "n2"), true);
  clock.advance(1);
  assert.equal(again.mutes("node_offline", "n2"), false);
  assert.deepEqual(windows.kept(), [], "what is over is kept no longer");
});

test("of too many windows the oldest is forgotten", () => {
  const { clock, windows } = opened();
  const untilWallMs = clock.wallMs() + MINUTE_MS;
  for (let at = 0; at < MAINTENANCE_WINDOWS_MAX; at++) {
    windows.open({ nodeIds: [`m${at}`], untilWallMs, reason: "" });
  }
  assert.equal(windows.until("n1"), undefined);
  assert.equal(windows.until("m0"), untilWallMs);
});
