// Tests of what resumable uploads keep and lose over ended streams, restarts and refused messages, and of
// their counters.
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { ManualClock } from "#base/clock.ts";
import { CHUNK_BYTES, UPLOAD_IDLE_MS } from "#base/limits.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { StaleAccessError } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { ResumableSink, StagingChange, StoredUpload } from "#storage/contract/upload-store.ts";
import { UPLOADS_KEPT_PER_USER } from "#storage/writer/upload-commands.ts";
import { STORAGE_QUEUE_COMMANDS } from "#storage/writer/write-queue.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { until } from "#testing/until.ts";
import { UPLOAD_RESTART_GRACE_MS } from "./local-uploads.ts";
import {
  assertSound,
  BY_OWNER,
  chunkFiles,
  freshStorage,
  inodeAt,
  OWNER,
  openTestStorage,
  patterned,
  readAll,
  refusal,
} from "./store.fixture.ts";

const BYTES = patterned(3 * CHUNK_BYTES + 1_000);

async function begun(storage: Storage, uploadId = "u1", sizeBytes = BYTES.length): Promise<void> {
  const rest = { path: "/f", onExists: "replace", ifMatch: undefined, mtimeMs: 7 } as const;
  await storage.uploads.create({ ...BY_OWNER, uploadId, sizeBytes, ...rest });
}

/** Sends bytes as messages of 1,000,000 bytes, each accepted. */
async function send(sink: ResumableSink, bytes: Buffer, isAccepted = true): Promise<void> {
  for (let at = 0; at < bytes.length; at += 1_000_000) {
    sink.beginMessage();
    await sink.write(bytes.subarray(at, at + 1_000_000));
    sink.endMessage();
    if (isAccepted) sink.acceptMessage();
  }
}

const target = (parentId: number) => ({
  ...BY_OWNER,
  parentId,
  name: "f",
  onExists: "replace" as const,
  ifMatch: undefined,
  mtimeMs: 7,
});
const ignore = (): void => undefined;

test("an ended stream leaves its whole chunks, counted as staged; another one goes on behind them and the file is exact (D15, D16)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  await begun(storage);
  const changes: StagingChange[] = [];
  const first = storage.uploads.open("u1", (change) => changes.push(change));
  await send(first, BYTES.subarray(0, CHUNK_BYTES + 2_500_000));
  await first.suspend();
  assert.equal(storage.uploads.find("u1")?.stagedBytes, CHUNK_BYTES);
  assert.equal(
    changes.reduce((sum, change) => sum + change.usedDeltaBytes, 0),
    CHUNK_BYTES,
  );
  assert.equal(storage.root(OWNER)?.usage.stagingBytes, CHUNK_BYTES);
  assert.equal(storage.root(OWNER)?.usage.liveBytes, 0);
  const second = storage.uploads.open("u1", ignore);
  assert.equal(second.receivedBytes, CHUNK_BYTES);
  await send(second, BYTES.subarray(CHUNK_BYTES));
  const change = await second.commit(target(rootDirectoryId));
  assert.equal(change.inode.crc32, crc32(BYTES));
  assert.equal(change.inode.mtimeMs, 7);
  const { liveBytes, stagingBytes } = storage.root(OWNER)?.usage ?? assert.fail();
  assert.deepEqual([liveBytes, stagingBytes], [BYTES.length, 0]);
  assert.equal(storage.uploads.find("u1"), undefined);
  assert.ok(BYTES.equals(await readAll(storage, change.inode.id)));
});

test("what is staged outlives a restart, what is not is swept (D15)", async (context) => {
  const directory = temporaryDirectory(context);
  const before = await openTestStorage(directory);
  const { directoryId } = await before.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await begun(before);
  const sink = before.uploads.open("u1", ignore);
  await send(sink, BYTES.subarray(0, 2 * CHUNK_BYTES + 500));
  await sink.suspend();
  await before.close();
  assertSound(directory);
  const after = await openTestStorage(directory);
  assert.equal(chunkFiles(directory).length, 2);
  assert.equal(after.uploads.find("u1")?.stagedBytes, 2 * CHUNK_BYTES);
  assert.equal(after.root(OWNER)?.usage.stagingBytes, 2 * CHUNK_BYTES);
  const rest = after.uploads.open("u1", ignore);
  await send(rest, BYTES.subarray(2 * CHUNK_BYTES));
  const { inode } = await rest.commit(target(directoryId));
  assert.equal(inode.crc32, crc32(BYTES));
  await after.close();
  assertSound(directory);
});

test("a commit that is refused keeps all that was sent, its short last chunk too; the next one needs no byte again (D15)", async (context) => {
  const directory = temporaryDirectory(context);
  const before = await openTestStorage(directory);
  const { directoryId } = await before.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await begun(before);
  const sink = before.uploads.open("u1", ignore);
  await send(sink, BYTES);
  await assert.rejects(sink.commit({ ...target(directoryId), accessVersion: 2 }), StaleAccessError);
  await sink.suspend();
  assert.equal(before.root(OWNER)?.usage.stagingBytes, BYTES.length);
  await before.close();
  assertSound(directory);
  const after = await openTestStorage(directory);
  const rest = after.uploads.open("u1", ignore);
  assert.equal(rest.receivedBytes, BYTES.length);
  const { inode } = await rest.commit(target(directoryId));
  assert.ok(BYTES.equals(await readAll(after, inode.id)));
  await after.close();
  assertSound(directory);
});

test("a chunk of a message that was not accepted is not staged, whole as it is (D15)", async (context) => {
  const { storage } = await freshStorage(context);
  await begun(storage);
  const sink = storage.uploads.open("u1", ignore);
  await send(sink, BYTES.subarray(0, CHUNK_BYTES));
  await send(sink, BYTES.subarray(CHUNK_BYTES, 2 * CHUNK_BYTES + 10), false);
  await sink.suspend();
  assert.equal(storage.uploads.find("u1")?.stagedBytes, CHUNK_BYTES);
});

test("an abort drops all that was staged and gives back its bytes (spec 3.5)", async (context) => {
  const { storage, directory } = await freshStorage(context);
  await begun(storage);
  const deltas: number[] = [];
  const sink = storage.uploads.open("u1", (change) => deltas.push(change.usedDeltaBytes));
  await send(sink, BYTES.subarray(0, 2 * CHUNK_BYTES));
  await until(() => storage.uploads.find("u1")?.stagedBytes === 2 * CHUNK_BYTES);
  await sink.abort();
  assert.equal(storage.uploads.find("u1"), undefined);
  assert.equal(storage.root(OWNER)?.usage.stagingBytes, 0);
  assert.equal(
    deltas.reduce((sum, delta) => sum + delta, 0),
    0,
  );
  await until(() => chunkFiles(directory).length === 0);
  assert.throws(() => storage.uploads.open("u1", ignore), refusal("NO_SUCH_UPLOAD"));
  await assert.rejects(storage.uploads.drop("u1"), refusal("NO_SUCH_UPLOAD"));
});

test("a small file and an empty one take the way of small files (D15)", async (context) => {
  const { storage, rootDirectoryId } = await freshStorage(context);
  for (const length of [0, 1_000]) {
    await begun(storage, `u${length}`, length);
    const sink = storage.uploads.open(`u${length}`, ignore);
    await send(sink, BYTES.subarray(0, length));
    await sink.commit(target(rootDirectoryId));
    assert.equal(inodeAt(storage, "f").sizeBytes, length);
    assert.equal(storage.uploads.find(`u${length}`), undefined);
  }
});

test(`a user keeps ${UPLOADS_KEPT_PER_USER} unfinished uploads and no more`, async (context) => {
  const { storage } = await freshStorage(context);
  await Promise.all(Array.from({ length: UPLOADS_KEPT_PER_USER }, (_, index) => begun(storage, `u${index}`)));
  await assert.rejects(begun(storage, "one more"), refusal("TOO_MANY_UPLOADS"));
  await storage.uploads.drop("u3");
  await begun(storage, "one more");
});

test("what is untouched is listed batch by batch, those of one moment included, and each once", async (context) => {
  const { storage } = await freshStorage(context, { clock: new ManualClock() });
  const ids = Array.from({ length: 7 }, (_, index) => `u${index}`);
  for (const uploadId of ids) await begun(storage, uploadId);
  const found: string[] = [];
  for (let last: StoredUpload | undefined; ; ) {
    const batch = storage.uploads.untouchedSince(storage.uploads.nowMs(), 3, last);
    found.push(...batch.map(({ uploadId }) => uploadId));
    last = batch.at(-1);
    if (last === undefined) break;
    // One that is dropped meanwhile moves none of the others.
    if (found.length === 3) await storage.uploads.drop("u2");
  }
  assert.deepEqual(found, ids);
});

test("no step of the wall clock ages an upload while the node runs, and after a restart it has an hour", async (context) => {
  const directory = temporaryDirectory(context);
  const clock = new ManualClock();
  const before = await openTestStorage(directory, { clock });
  await before.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await begun(before);
  const isExpired = (storage: Storage): boolean =>
    storage.uploads.untouchedSince(storage.uploads.nowMs() - UPLOAD_IDLE_MS, 10).length === 1;
  clock.jumpWall(100 * UPLOAD_IDLE_MS);
  assert.equal(isExpired(before), false);
  clock.advance(UPLOAD_IDLE_MS - 1);
  assert.equal(isExpired(before), false);
  clock.advance(1);
  assert.equal(isExpired(before), true);
  await before.close();
  const after = await openTestStorage(directory, { clock });
  assert.equal(isExpired(after), false);
  clock.advance(UPLOAD_RESTART_GRACE_MS - 1);
  assert.equal(isExpired(after), false);
  clock.advance(1);
  assert.equal(isExpired(after), true);
  await after.close();
});

test("a check finds an upload that says other than its chunks do, and a repair drops it (D16)", async (context) => {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await begun(storage);
  const sink = storage.uploads.open("u1", ignore);
  await send(sink, BYTES.subarray(0, CHUNK_BYTES));
  await sink.suspend();
  await storage.close();
  const { DatabaseSync } = await import("node:sqlite");
  const db = new DatabaseSync(`${directory}/inodes.db`);
  db.exec("UPDATE upload SET staged_bytes = 5");
  db.close();
  const found = checkStorage(directory, { repair: true, deep: true }).differences.map(String).join("\n");
  assert.match(found, /unfinished upload u1 says 5 staged bytes; there are 4000000/);
  assertSound(directory);
});

test("what an upload has staged is dropped in the end when its drop is refused for the load of the moment (D15, D16)", async (context) => {
  const { storage, rootDirectoryId: parentId } = await freshStorage(context);
  await begun(storage);
  const changes: StagingChange[] = [];
  const sink = storage.uploads.open("u1", (change) => changes.push(change));
  await send(sink, BYTES.subarray(0, CHUNK_BYTES));
  await until(() => changes.length === 1);
  const others = Array.from({ length: STORAGE_QUEUE_COMMANDS }, (_, index) =>
    storage.createDirectory({ ...BY_OWNER, parentId, name: `d${index}` }),
  );
  const aborted = sink.abort();
  await assert.rejects(storage.uploads.drop("u1"), refusal("OVERLOADED"));
  assert.equal(storage.root(OWNER)?.usage.stagingBytes, CHUNK_BYTES);
  await aborted;
  assert.equal(storage.uploads.find("u1"), undefined);
  assert.equal(storage.root(OWNER)?.usage.stagingBytes, 0);
  assert.equal(changes.at(-1)?.usedDeltaBytes, -CHUNK_BYTES);
  await Promise.all(others);
});
