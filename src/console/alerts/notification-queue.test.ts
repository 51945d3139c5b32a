// The queue on a real disk: in order, bounded, whole after a crash (decision D11).
import assert from "node:assert/strict";
import { readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { Notice } from "./notification.ts";
import { NotificationQueue, type QueuedNotification } from "./notification-queue.ts";

let folder = "";
beforeEach(async () => {
  folder = scratchFolder("grove-queue-");
});

const open = (capacity?: number): Promise<NotificationQueue> =>
  NotificationQueue.open({ folder, log: silentLogger, ...(capacity === undefined ? {} : { capacity }) });
const notice: Notice = { group: { alertname: "corruption" }, status: "firing", alerts: [], truncated: 0 };
const message = (receiver: string): Omit<QueuedNotification, "seq"> => ({
  receiver,
  createdWallMs: 1,
  notice,
});
const numbers = (queue: NotificationQueue): number[] => queue.waiting().map(({ seq }) => seq);

test("messages come back in order after a restart, each for its receiver, private to their owner", async () => {
  const queue = await open();
  await queue.add([message("a"), message("b"), message("a")]);
  const again = await open();
  assert.deepEqual(again.waiting(), queue.waiting());
  assert.equal(again.next("b", 3)?.seq, 2);
  assert.equal(again.next("b", 1), undefined);
  await again.remove(1);
  assert.equal(again.next("a", 3)?.seq, 3);
  for (const name of await readdir(folder)) {
    assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600);
  }
  assert.deepEqual(numbers(await open()), [2, 3]);
});

test("a number is never given twice, also when all is delivered and the console was restarted", async () => {
  const queue = await open();
  await queue.add([message("a"), message("a")]);
  await queue.remove(1);
  await queue.remove(2);
  const again = await open();
  again.countFrom(2);
  await again.add([message("a")]);
  assert.deepEqual(numbers(again), [3]);
});

test("one message too many takes the place of the oldest, which is named; at the limit nothing goes", async () => {
  const queue = await open(3);
  assert.deepEqual((await queue.add([message("a"), message("a"), message("a")])).dropped, []);
  const { dropped } = await queue.add([message("a"), message("b")]);
  assert.deepEqual(
    dropped.map(({ seq }) => seq),
    [1, 2],
  );
  assert.deepEqual(numbers(await open(3)), [3, 4, 5]);
  assert.equal(await queue.remove(1), false);
});

test("half a message that a crash has left is removed, and so is a damaged one; the rest is there", async () => {
  const queue = await open();
  await queue.add([message("a"), message("a")]);
  await writeFile(join(folder, ".0000000000000003.json.0123456789abcdef.tmp"), '{"schema":1,');
  await writeFile(join(folder, "0000000000000001.json"), '{"schema":1,"seq":1');
  await writeFile(join(folder, "notes.txt"), "an operator's own");
  assert.deepEqual(numbers(await open()), [2]);
  assert.deepEqual((await readdir(folder)).toSorted(), ["0000000000000002.json", "notes.txt"]);
});

test("a message of a newer version is not thrown away: the queue does not open (D18)", async () => {
  const path = join(folder, "0000000000000001.json");
  await writeFile(path, '{"schema":2,"seq":1}');
  await assert.rejects(open(), /newer Grove/);
  assert.deepEqual(await readdir(folder), ["0000000000000001.json"]);
});

test("what cannot be written waits in memory", async () => {
  const queue = await open();
  await rm(folder, { recursive: true });
  await queue.add([message("a")]);
  assert.equal(queue.next("a", 1)?.seq, 1);
  assert.equal(await queue.remove(1), true);
});

test("a receiver with many messages displaces its own, and not those of others (D11)", async () => {
  const queue = await open(4);
  const to = ["ops", "users", "users", "users", "users", "users", "ops"];
  const { dropped } = await queue.add(to.map(message));
  assert.deepEqual(
    dropped.map(({ seq, receiver }) => [seq, receiver]),
    [
      [2, "users"],
      [3, "users"],
      [4, "users"],
    ],
  );
  assert.deepEqual(numbers(await open(4)), [1, 5, 6, 7]);
});
