// Tests both sides of every limit of the space above a disk's reserve, and refused uploads as critical.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type NodeGauges, nodeConditions } from "./node-rules.ts";
import { type ReserveGauges, reserveLevel } from "./reserve-rule.ts";

const GIB = 2n ** 30n;
/** A disk on which bytes decide, not their share. */
const LARGE: ReserveGauges = {
  diskFreeBytes: 520n * GIB,
  diskTotalBytes: 2_000n * GIB,
  reserveBytes: 20n * GIB,
};

function levelOf(gauges: Partial<ReserveGauges>, fullInDays?: number): string {
  const { level, keepsCritical } = reserveLevel({ ...LARGE, ...gauges }, fullInDays);
  return keepsCritical === true ? `${level}, keeps critical` : level;
}

const withLeft = (left: bigint, fullInDays?: number): string =>
  levelOf({ diskFreeBytes: 20n * GIB + left }, fullInDays);

test("less than 10 GiB above the reserve are a warning, less than 1 GiB critical; hardly more than the limit changes nothing", () => {
  const tenth = (gib: bigint): bigint => (GIB * gib * 5n) / 4n;
  assert.deepEqual(
    [
      tenth(10n) + 1n,
      tenth(10n),
      10n * GIB,
      10n * GIB - 1n,
      tenth(1n) + 1n,
      tenth(1n),
      GIB,
      GIB - 1n,
      1n,
      0n,
      -1n,
    ].map((left) => withLeft(left)),
    [
      "clear",
      "hold",
      "hold",
      "warning",
      "warning",
      "warning, keeps critical",
      "warning, keeps critical",
      "critical",
      "critical",
      "critical",
      "critical",
    ],
  );
});

test("less than 7 days at the present pace are a warning, less than one critical, however many bytes are left", () => {
  assert.deepEqual(
    [8.76, 8.75, 7, 6.99, 1.26, 1.25, 1, 0.99].map((days) => withLeft(500n * GIB, days)),
    [
      "clear",
      "hold",
      "hold",
      "warning",
      "warning",
      "warning, keeps critical",
      "warning, keeps critical",
      "critical",
    ],
  );
  assert.equal(withLeft(GIB - 1n, 300), "critical", "the worse of both counts");
  assert.equal(withLeft(10n * GIB - 1n, 0.5), "critical");
});

test("on a small disk, or with a large reserve, a tenth and a hundredth of what is above it are the limits", () => {
  const small = (left: bigint): string =>
    levelOf({ diskTotalBytes: 30n * GIB, diskFreeBytes: 20n * GIB + left });
  assert.deepEqual([2n * GIB, GIB, GIB - 1n, GIB / 10n - 1n].map(small), [
    "clear",
    "hold",
    "warning",
    "critical",
  ]);
  assert.equal(levelOf({ diskTotalBytes: 10n * GIB, diskFreeBytes: 9n * GIB }), "critical");
  assert.equal(levelOf({ diskTotalBytes: null, diskFreeBytes: 25n * GIB }), "warning");
});

test("what is not known of free space or reserve is no health", () => {
  assert.equal(levelOf({ diskFreeBytes: null }), "unknown");
  assert.equal(levelOf({ reserveBytes: null }), "unknown");
});

test("what is left, the reserve and the days are told with it", () => {
  const found = reserveLevel({ ...LARGE, diskFreeBytes: 25n * GIB }, 3.06);
  assert.deepEqual(
    [found.value, found.threshold, found.detail],
    [
      5_368_709_120,
      10_737_418_240,
      { usable_bytes: 5_368_709_120, reserve_bytes: 21_474_836_480, full_in_days: 3.1 },
    ],
  );
});

test("a disk at 40 % that is down to its reserve is critical beside a storage_warning that is clear", () => {
  const gauges: NodeGauges = {
    diskUsagePercent: 40,
    diskFreeBytes: 60n * GIB,
    diskTotalBytes: 100n * GIB,
    reserveBytes: 60n * GIB,
    inodeFree: null,
    inodeTotal: null,
    cpuTempCelsius: null,
    certDaysLeft: null,
    clockSkewMs: null,
    quotaDriftBytes: null,
    driftedCounters: null,
    storageFailed: null,
    damagedFileCount: null,
    authMock: null,
    invalidFields: [],
  };
  const more = { window: { errors: 0, ops: 0, isFull: true, failingRun: 0 }, fullInDays: undefined };
  const found = nodeConditions({ id: "n1", name: "fs-1" }, gauges, more);
  const level = (key: string): string | undefined => found.find((each) => each.key === key)?.level;
  assert.deepEqual([level("storage_warning:n1"), level("storage_reserve:n1")], ["clear", "critical"]);
});
