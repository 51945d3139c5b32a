// Floods and honest traffic: bytes that calls take never count, and a few others are allowed.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  FLOOD_BURST_BYTES,
  FLOOD_BYTES_PER_SECOND,
  FRAME_COST_BYTES,
  LATE_BYTES,
  WRITTEN_PER_UPDATE_BYTE,
} from "#wire/framing/limits.ts";
import { FloodGauge, headerBytes } from "./flood-gauge.ts";

test("whatever calls take, and however fast, is no flood", () => {
  const step = fc.record({ bytes: fc.nat(50_000_000), ms: fc.nat(1_000) });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const gauge = new FloodGauge(0);
      let [readBytes, nowMs] = [0, 0];
      for (const { bytes, ms } of steps) {
        readBytes += bytes;
        nowMs += ms;
        gauge.took(bytes);
        assert.ok(gauge.excessBytes({ readBytes, writtenBytes: 0 }, nowMs) <= -FLOOD_BURST_BYTES);
      }
    }),
  );
});

test("what no call takes may be a burst, and after that so much a second", () => {
  const gauge = new FloodGauge(0);
  let readBytes = FLOOD_BURST_BYTES;
  assert.equal(gauge.excessBytes({ readBytes, writtenBytes: 0 }, 0), 0);
  for (let second = 1; second <= 20; second++) {
    readBytes += FLOOD_BYTES_PER_SECOND;
    assert.equal(gauge.excessBytes({ readBytes, writtenBytes: 0 }, second * 1_000), 0);
  }
  readBytes += FLOOD_BYTES_PER_SECOND + 1;
  assert.equal(gauge.excessBytes({ readBytes, writtenBytes: 0 }, 21_000), 1);
});

test("a silent hour saves nothing up", () => {
  const gauge = new FloodGauge(0);
  assert.equal(gauge.excessBytes({ readBytes: 0, writtenBytes: 0 }, 3_600_000), -FLOOD_BURST_BYTES);
  const readBytes = FLOOD_BURST_BYTES + 1;
  assert.equal(gauge.excessBytes({ readBytes, writtenBytes: 0 }, 3_600_000), 1);
});

test("what may come late for calls that take no more is bounded, and is forgotten after a while in which others come", () => {
  const gauge = new FloodGauge(0);
  gauge.took(100 * LATE_BYTES);
  assert.equal(gauge.excessBytes({ readBytes: 0, writtenBytes: 0 }, 0), -LATE_BYTES - FLOOD_BURST_BYTES);
  const readBytes = LATE_BYTES + FLOOD_BURST_BYTES;
  assert.equal(gauge.excessBytes({ readBytes, writtenBytes: 0 }, 0), 0);
  const other = new FloodGauge(0);
  other.took(LATE_BYTES);
  other.excessBytes({ readBytes: 0, writtenBytes: 0 }, 0);
  const forgottenMs = (LATE_BYTES / FLOOD_BYTES_PER_SECOND) * 1_000;
  other.took(17);
  assert.equal(other.excessBytes({ readBytes: 17, writtenBytes: 0 }, forgottenMs), -FLOOD_BURST_BYTES);
});

test("what may come late is expected for as long as nothing comes: the network may stand still", () => {
  const gauge = new FloodGauge(0);
  gauge.took(LATE_BYTES);
  for (let second = 0; second < 60; second++) {
    gauge.excessBytes({ readBytes: 0, writtenBytes: 0 }, second * 1_000);
  }
  const readBytes = LATE_BYTES + FLOOD_BURST_BYTES;
  assert.equal(gauge.excessBytes({ readBytes, writtenBytes: 0 }, 59_000), 0);
});

test("who receives much may move its windows as often as there are frames", () => {
  const gauge = new FloodGauge(0);
  const frames = 1_000_000;
  const traffic = { readBytes: 26 * frames, writtenBytes: 16_384 * frames };
  assert.ok(traffic.readBytes < traffic.writtenBytes / WRITTEN_PER_UPDATE_BYTE);
  assert.ok(gauge.excessBytes(traffic, 0) <= -FLOOD_BURST_BYTES);
});

test("headers count with what they take beside their characters", () => {
  assert.equal(headerBytes([]), FRAME_COST_BYTES);
  assert.equal(headerBytes(["te", "trailers"]), FRAME_COST_BYTES + 14);
});
