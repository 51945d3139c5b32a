// Tests of the bytes in flight: few on a slow link, many on a fast one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { IN_FLIGHT_BYTES_MIN, TRANSFERS_IN_FLIGHT } from "#client/terminal/limits.ts";
import { TransferPool } from "./transfer-pool.ts";
import { TransferWindow } from "./transfer-window.ts";

const FILE_BYTES = 65_536;

/** A link that carries transfers one after the other; gives the most bytes that were on it at once. */
async function sendOver(bytesPerSecond: number, files: number): Promise<{ most: number; latest: number }> {
  const clock = new ManualClock();
  const pool = new TransferPool();
  const window = new TransferWindow(clock);
  const seen = { most: 0, latest: 0 };
  const queue: (() => void)[] = [];
  for (let file = 0; file < files; file++) {
    const transfer = (): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>();
      queue.push(resolve);
      seen.latest = queue.length * FILE_BYTES;
      seen.most = Math.max(seen.most, seen.latest);
      return promise;
    };
    assert.equal(
      pool.add(() => window.run(FILE_BYTES, transfer), "small"),
      true,
    );
  }
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    clock.advance((FILE_BYTES / bytesPerSecond) * 1_000);
    next();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await pool.done();
  return seen;
}

test("a slow uplink never has more bytes of small files in flight than it carries in ten seconds", async () => {
  const { most } = await sendOver(64_000, 200);
  assert(most <= 640_000, `${most} bytes`);
  const { latest } = await sendOver(8_000, 200);
  assert(latest <= IN_FLIGHT_BYTES_MIN, `${latest} bytes`);
});

test("a fast link soon has as many small files in flight as there are places", async () => {
  const { most } = await sendOver(100_000_000, 500);
  assert.equal(most, TRANSFERS_IN_FLIGHT * FILE_BYTES);
});

test("a file larger than all that may be in flight is sent alone, and one that fails gives its bytes back", async () => {
  const window = new TransferWindow(new ManualClock());
  const large = Promise.withResolvers<void>();
  const begun: string[] = [];
  const send = (name: string, bytes: number, ends?: Promise<void>): Promise<void> =>
    window.run(bytes, async () => {
      begun.push(name);
      await ends;
    });
  const failing = send("large", 4_000_000, large.promise);
  const others = Promise.all([send("next", 3_000_000), send("small", 1)]);
  assert.deepEqual(begun, ["large"]);
  large.reject(new Error("broken"));
  await assert.rejects(failing, /broken/);
  await others;
  assert.deepEqual(begun, ["large", "next", "small"]);
});

test("a failure that every other would meet ends those that wait and those that come", async () => {
  const window = new TransferWindow(new ManualClock());
  const silent = new ClientError("NETWORK", "no answer");
  let begun = 0;
  const fail = async (error: Error): Promise<void> => {
    begun++;
    throw error;
  };
  const odd = window.run(4_000_000, () => fail(new Error("odd name")));
  const next = window.run(4_000_000, () => fail(silent));
  const waiting = window.run(1, () => fail(new Error("begun although nobody answers")));
  await assert.rejects(odd, /odd name/);
  for (const one of [next, waiting, window.run(1, () => fail(silent))]) await assert.rejects(one, silent);
  assert.equal(begun, 2);
});
