// Byte counts as people write and read them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatBytes, parseBytes } from "./bytes.ts";

test("sizes are shown in binary units with at most one decimal", () => {
  assert.equal(formatBytes(0), "0 B");
  assert.equal(formatBytes(1023), "1023 B");
  assert.equal(formatBytes(1024), "1 KiB");
  assert.equal(formatBytes(17_179_869_184n), "16 GiB");
  assert.equal(formatBytes(13_000_000_000n), "12.1 GiB");
  assert.equal(formatBytes(18_446_744_073_709_551_615n), "16 EiB");
});

test("a value just under the next unit is shown in that unit and not as 1024 of the smaller", () => {
  assert.equal(formatBytes(1_048_575), "1 MiB");
});

test("sizes are read with or without unit, exactly", () => {
  assert.equal(parseBytes("1024"), 1024n);
  assert.equal(parseBytes("64MiB"), 67_108_864n);
  assert.equal(parseBytes("1.5 GiB"), 1_610_612_736n);
  assert.equal(parseBytes("2g"), 2_147_483_648n);
  assert.equal(parseBytes("0.000KiB"), 0n);
  assert.equal(parseBytes("0.001KiB"), 1n);
  assert.equal(parseBytes("0.0009KiB"), undefined);
  assert.equal(parseBytes("16EiB"), 18_446_744_073_709_551_616n);
  for (const text of ["", "GiB", "-1", "1.5", "12XB", "1e3", "0x10", "1 2"])
    assert.equal(parseBytes(text), undefined, text);
});
