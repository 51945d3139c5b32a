// Tests the overview's texts about room: for uploads, the disk that is full first, missing forecasts.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  allBytesForUploads,
  bytesForUploads,
  fillsFirst,
  inodesLeftText,
  refusesUploads,
} from "./disk-room.ts";
import type { LiveNode } from "./live-node.ts";
import { reasonOf } from "./node-state.ts";

const GIB = 2 ** 30;
const node = (fields: Partial<LiveNode> = {}): LiveNode =>
  ({
    name: "fs-1",
    status: "online",
    stale: false,
    disk_free_bytes: 100 * GIB,
    reserve_bytes: 20 * GIB,
    disk_usage_percent: 40,
    disk_forecast_known: true,
    cpu_temp_celsius: null,
    storage_failed: false,
    ...fields,
  }) as LiveNode;

test("uploads may take what is above the reserve, to the byte; of a node that is away or has not told nothing is known", () => {
  assert.equal(bytesForUploads(node({ disk_free_bytes: 20 * GIB + 1 })), 1n);
  assert.equal(bytesForUploads(node({ disk_free_bytes: 20 * GIB })), 0n);
  assert.equal(bytesForUploads(node({ disk_free_bytes: 0 })), 0n);
  for (const fields of [
    { disk_free_bytes: null },
    { reserve_bytes: null },
    { status: "offline" },
    { unknown: true },
  ] as const) {
    assert.equal(bytesForUploads(node(fields)), undefined);
    assert.equal(
      refusesUploads(node({ ...fields, ...("disk_free_bytes" in fields ? {} : { disk_free_bytes: 0 }) })),
      false,
    );
  }
  assert.equal(
    allBytesForUploads([node(), node({ disk_free_bytes: 0 }), node({ status: "offline" })]),
    String(80 * GIB),
  );
  assert.equal(allBytesForUploads([node({ unknown: true })]), undefined);
});

test("inodes are told with their share; without a number of them there is no limit", () => {
  assert.equal(inodesLeftText({ inode_free: 25, inode_total: 1_000 }), "25 of 1,000 free (2.5 %)");
  assert.equal(inodesLeftText({ inode_free: 0, inode_total: 0 }), "as many as are needed");
  assert.equal(inodesLeftText({ inode_free: 5, inode_total: null }), "–");
});

test("a disk that is down to its reserve is first, whatever the forecasts are", () => {
  const full = node({ name: "fs-2", disk_free_bytes: 20 * GIB });
  const filling = node({ disk_full_in_days: 0.5 });
  assert.deepEqual(fillsFirst([filling, full]), { node: full, text: "refuses uploads now" });
  assert.equal(fillsFirst([full, full]).text, "refuses uploads now, and so does 1 more");
  assert.equal(fillsFirst([full, full, full]).text, "refuses uploads now, and so do 2 more");
  assert.match(reasonOf(full, 0), /^refuses uploads: its disk is down to the reserve of 20 GiB$/);
});

test("the soonest is named, with how many others have no forecast; nothing is promised of what is not known", () => {
  const [late, soon] = [node({ disk_full_in_days: 30 }), node({ disk_full_in_days: 12 })];
  assert.deepEqual(fillsFirst([late, soon]), { node: soon, text: "in 12 days" });
  const unheard = node({ disk_forecast_known: false });
  assert.equal(fillsFirst([late, unheard]).text, "in 30 days; of 1 other it is not known yet");
  assert.deepEqual(fillsFirst([unheard]), {
    node: undefined,
    text: "not known yet: that takes six hours of answers",
  });
  assert.match(fillsFirst([unheard, node()]).text, /^not known yet: .* of every node$/);
  assert.equal(fillsFirst([node()]).text, "no disk is filling");
  assert.equal(fillsFirst([node(), node({ ...unheard, status: "offline" })]).text, "no disk is filling");
});
