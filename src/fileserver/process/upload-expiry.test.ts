// Tests of what becomes of begun uploads that nobody goes on with, or whose users have lost their place (D15).
import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { ManualClock } from "#base/clock.ts";
import { CHUNK_BYTES, UPLOAD_IDLE_MS } from "#base/limits.ts";
import {
  UPLOAD_EXPIRY_BATCH,
  UPLOAD_EXPIRY_INTERVAL_MS,
} from "#fileserver/operations/resumable-operations.ts";
import { until } from "#testing/until.ts";
import { chunk, header, refusal, startTestNode, type TestUser } from "./node.fixture.ts";

const FIRST_CHUNK = Buffer.alloc(CHUNK_BYTES, "grove ");
/** Of each upload: two chunks and a little. */
const SIZE = BigInt(2 * CHUNK_BYTES + 100);

test("an upload that somebody goes on with while another expires is not dropped with it (D15)", async () => {
  const clock = new ManualClock();
  const own = await startTestNode({ clock });
  try {
    const user = await own.signIn("ada@example.com");
    await user.call.beginUpload({ path: "/a", size: SIZE });
    await user.call.beginUpload({ path: "/b", size: SIZE });
    const { storage, turns } = own.node.service.uploads;
    const [first, second] = storage.uploads.untouchedSince(storage.uploads.nowMs(), 2);
    const uploadId = second?.uploadId ?? assert.fail();
    // The first one's removal waits for a slow disk.
    const disk = Promise.withResolvers<void>();
    const drop = storage.uploads.drop.bind(storage.uploads);
    storage.uploads.drop = async (id) => {
      await disk.promise;
      return drop(id);
    };
    clock.advance(UPLOAD_IDLE_MS + UPLOAD_EXPIRY_INTERVAL_MS);
    const expiring = own.node.service.resumable.expire();
    await until(() => turns.isTaken(first?.uploadId ?? ""));
    const ignore = (): void => undefined;
    await turns.take(uploadId, ignore, async () => {
      const sink = storage.uploads.open(uploadId, ignore);
      sink.beginMessage();
      await sink.write(FIRST_CHUNK);
      sink.endMessage();
      sink.acceptMessage();
      await sink.suspend();
    });
    disk.resolve();
    await expiring;
    const kept = storage.uploads.untouchedSince(storage.uploads.nowMs(), 2);
    assert.deepEqual(
      kept.map((upload) => [upload.uploadId, upload.stagedBytes]),
      [[uploadId, CHUNK_BYTES]],
    );
  } finally {
    await own.stop();
  }
});

test("idle uploads into a root that moves away are kept for now, and keep no other, however many they are (D15)", async () => {
  const clock = new ManualClock();
  const own = await startTestNode({ clock });
  try {
    // The node's own look at uploads comes a moment before they are idle for long enough.
    clock.advance(1);
    const moving = await own.signIn("ada@example.com");
    const paths = Array.from({ length: UPLOAD_EXPIRY_BATCH }, (_, count) => `/${count}`);
    await Promise.all(paths.map((path) => moving.call.beginUpload({ path, size: SIZE })));
    clock.advance(1);
    await (await own.signIn("bob@example.com")).call.beginUpload({ path: "/a", size: SIZE });
    const { storage, resumable } = { ...own.node, ...own.node.service };
    const moveId = "01J0000000000000000000000M";
    await storage.moves.beginExport({ moveId, owner: "ada@example.com" });
    await storage.moves.freeze(moveId);
    clock.advance(UPLOAD_IDLE_MS);
    await resumable.expire();
    const kept = storage.uploads.untouchedSince(storage.uploads.nowMs(), 2 * UPLOAD_EXPIRY_BATCH);
    assert.equal(kept.length, UPLOAD_EXPIRY_BATCH);
    assert.deepEqual(new Set(kept.map(({ owner }) => owner)), new Set(["ada@example.com"]));
  } finally {
    await own.stop();
  }
});

test("a user's uploads end with the user's rights but for those into a root that moves away (D15)", async () => {
  const own = await startTestNode();
  try {
    const owner = await own.signIn("ada@example.com");
    const bob = await own.signIn("bob@example.com");
    await owner.call.createDirectory({ path: "/a" });
    await owner.call.share({ path: "/a", user: "bob@example.com" });
    await bob.call.beginUpload({ root: "ada@example.com", path: "/a/b", size: SIZE });
    const { uploadId } = await bob.call.beginUpload({ path: "/b", size: SIZE });
    const { storage, resumable } = { ...own.node, ...own.node.service };
    const moveId = "01J0000000000000000000000M";
    await storage.moves.beginExport({ moveId, owner: "ada@example.com" });
    await storage.moves.freeze(moveId);
    assert.equal(await resumable.dropAllOf("bob@example.com"), 1);
    assert.equal((await refusal(bob.call.getUpload({ uploadId }))).reason, "NO_SUCH_UPLOAD");
  } finally {
    await own.stop();
  }
});

test("what a user staged in another's root goes once its place is no longer shared, and nothing else (D13, D15)", async () => {
  const own = await startTestNode();
  try {
    const owner = await own.signIn("ada@example.com");
    const bob = await own.signIn("bob@example.com");
    const root = "ada@example.com";
    for (const path of ["/a", "/a/in", "/ab"]) await owner.call.createDirectory({ path });
    for (const path of ["/a", "/ab"]) await owner.call.share({ path, user: "bob@example.com" });
    const begin = (user: TestUser, path: string) => user.call.beginUpload({ root, path, size: SIZE });
    const inner = await begin(bob, "/a/in/x");
    const other = await begin(bob, "/ab/x");
    const mine = await begin(owner, "/a/y");
    const { uploadId } = inner;
    const cutOff = [
      header("", { root, uploadId, resumeOffset: 0n }),
      chunk(0, FIRST_CHUNK, crc32(FIRST_CHUNK)),
    ];
    await assert.rejects(bob.upload(cutOff));
    assert.equal((await owner.call.getQuota({})).stagingBytes, BigInt(CHUNK_BYTES));
    await own.node.service.resumable.expire();
    assert.equal((await owner.call.getQuota({})).stagingBytes, BigInt(CHUNK_BYTES));
    await owner.call.unshare({ path: "/a", user: "bob@example.com" });
    await own.node.service.resumable.expire();
    assert.equal((await owner.call.getQuota({})).stagingBytes, 0n);
    const gone = await refusal(bob.call.getUpload({ root, uploadId: inner.uploadId }));
    assert.equal(gone.reason, "NO_SUCH_UPLOAD");
    assert.equal((await bob.call.getUpload({ root, uploadId: other.uploadId })).offset, 0n);
    assert.equal((await owner.call.getUpload({ uploadId: mine.uploadId })).offset, 0n);
  } finally {
    await own.stop();
  }
});
