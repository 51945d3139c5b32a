// Broken uploads: staged bytes stay, count in the quota, only their client sees them (D15, D16, spec 3.5).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { crc32 } from "node:zlib";
import { ManualClock } from "#base/clock.ts";
import { CHUNK_BYTES, UPLOAD_IDLE_MS } from "#base/limits.ts";
import { UPLOAD_EXPIRY_INTERVAL_MS } from "#fileserver/operations/resumable-operations.ts";
import { OnExists } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  bytesOf,
  chunk,
  header,
  refusal,
  startTestNode,
  type TestNode,
  type TestUser,
  type UploadPart,
} from "./node.fixture.ts";

const BYTES = Buffer.alloc(2 * CHUNK_BYTES + 100, "grove ");
const SIZE = BigInt(BYTES.length);

let node: TestNode;
let ada: TestUser;
let admin: TestUser;
before(async () => {
  node = await startTestNode({ env: { SVC_ADMIN_EMAIL: "root@example.com" } });
  admin = await node.signIn("root@example.com");
  ada = await node.signIn("ada@example.com");
});
after(() => node.stop());

/** The messages of one stream: whole chunks from one offset to another. */
function* stream(uploadId: string, from: number, to: number): Generator<UploadPart> {
  yield header("", { uploadId, resumeOffset: BigInt(from) });
  for (let at = from; at < to; at += CHUNK_BYTES) {
    const data = BYTES.subarray(at, Math.min(at + CHUNK_BYTES, to));
    yield chunk(at, data, crc32(data));
  }
}

/** Sends a stream, then neither goes on nor ends until the signal. */
function hangingStream(user: TestUser, uploadId: string, from: number, to: number) {
  const abort = new AbortController();
  async function* hanging(): AsyncGenerator<UploadPart> {
    yield* stream(uploadId, from, to);
    await new Promise((resolve) => abort.signal.addEventListener("abort", resolve));
  }
  const result = user.call.uploadFile(hanging(), { signal: abort.signal });
  result.catch(() => undefined);
  return { result, cut: () => abort.abort() };
}

async function setQuota(username: string, quotaBytes: bigint): Promise<void> {
  assert.equal((await admin.call.setQuota({ username, quotaBytes })).success, true);
}

/** Waits until the server has seen the cut. */
async function untilReleased(): Promise<void> {
  while (node.node.service.ledger.openAccounts > 0) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function untilStaged(user: TestUser, uploadId: string, bytes: number): Promise<void> {
  while ((await user.call.getUpload({ uploadId })).offset !== BigInt(bytes)) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("a cut upload goes on where its staged bytes end, and becomes the same file (D15)", async () => {
  const begun = await ada.call.beginUpload({ path: "/a", size: SIZE, mtimeMs: 77n });
  assert.equal(begun.offset, 0n);
  assert.ok(begun.expiresAtMs > BigInt(Date.now() + UPLOAD_IDLE_MS / 2));
  const { uploadId } = begun;
  const first = hangingStream(ada, uploadId, 0, CHUNK_BYTES + 50);
  await untilStaged(ada, uploadId, CHUNK_BYTES);
  const during = await ada.call.getQuota({});
  assert.equal(during.stagingBytes, BigInt(CHUNK_BYTES));
  assert.equal(during.usedBytes, during.liveBytes + during.stagingBytes);
  first.cut();
  await assert.rejects(first.result);
  assert.equal((await ada.call.getUpload({ uploadId })).offset, BigInt(CHUNK_BYTES));
  const done = await ada.upload(stream(uploadId, CHUNK_BYTES, BYTES.length));
  assert.equal(done.attr?.crc32, crc32(BYTES));
  assert.equal(done.attr?.mtimeMs, 77n);
  assert.equal(done.uploadId, uploadId);
  assert.ok(BYTES.equals(bytesOf(await ada.download({ path: "/a" }))));
  const quota = await ada.call.getQuota({});
  assert.equal(quota.stagingBytes, 0n);
  assert.equal(node.node.service.ledger.promisedBytes, 0n);
  assert.equal((await refusal(ada.call.getUpload({ uploadId }))).reason, "NO_SUCH_UPLOAD");
});

test("another offset than the staged one is refused with the right one (D1, D15)", async () => {
  const { uploadId } = await ada.call.beginUpload({ path: "/b", size: SIZE });
  const wrong = await refusal(ada.upload(stream(uploadId, CHUNK_BYTES, BYTES.length)));
  assert.deepEqual([wrong.code, wrong.reason], [10, "OFFSET_MISMATCH"]);
  assert.equal(wrong.error.metadata.get("svc-offset"), "0");
  await ada.upload(stream(uploadId, 0, BYTES.length));
});

test("a stream that ends early or brings wrong bytes keeps what was right before (D15)", async () => {
  const { uploadId } = await ada.call.beginUpload({ path: "/c", size: SIZE });
  const short = await refusal(ada.upload(stream(uploadId, 0, CHUNK_BYTES)));
  assert.equal(short.reason, "BAD_ARGUMENT");
  assert.equal((await ada.call.getUpload({ uploadId })).offset, BigInt(CHUNK_BYTES));
  function* wrong(): Generator<UploadPart> {
    yield header("", { uploadId, resumeOffset: BigInt(CHUNK_BYTES) });
    yield chunk(CHUNK_BYTES, BYTES.subarray(0, CHUNK_BYTES), 5);
  }
  assert.equal((await refusal(ada.upload(wrong()))).reason, "CHECKSUM_MISMATCH");
  assert.equal((await ada.call.getUpload({ uploadId })).offset, BigInt(CHUNK_BYTES));
  await ada.upload(stream(uploadId, CHUNK_BYTES, BYTES.length));
});

test("a new stream takes over from one that is silent, and has all that it staged (D15)", async () => {
  const { uploadId } = await ada.call.beginUpload({ path: "/d", size: SIZE });
  const silent = hangingStream(ada, uploadId, 0, CHUNK_BYTES);
  await untilStaged(ada, uploadId, CHUNK_BYTES);
  const done = await ada.upload(stream(uploadId, CHUNK_BYTES, BYTES.length));
  assert.equal(done.attr?.crc32, crc32(BYTES));
  assert.equal((await refusal(silent.result)).reason, "UPLOAD_TAKEN_OVER");
  silent.cut();
});

test("nobody but the user who began an upload learns of it, goes on with it or aborts it", async () => {
  const eve = await node.signIn("eve@example.com");
  const { uploadId } = await ada.call.beginUpload({ path: "/e", size: SIZE });
  for (const root of ["", "ada@example.com"]) {
    assert.equal((await refusal(eve.call.getUpload({ root, uploadId }))).reason, "NO_SUCH_UPLOAD");
    assert.equal((await refusal(eve.call.abortUpload({ root, uploadId }))).reason, "NO_SUCH_UPLOAD");
  }
  assert.equal((await refusal(eve.upload(stream(uploadId, 0, BYTES.length)))).reason, "NO_SUCH_UPLOAD");
  assert.equal((await ada.call.abortUpload({ uploadId })).freedBytes, 0n);
});

test("an abort drops staged bytes at once, also while a stream runs (spec 3.5)", async () => {
  const { uploadId } = await ada.call.beginUpload({ path: "/f", size: SIZE });
  const running = hangingStream(ada, uploadId, 0, CHUNK_BYTES);
  await untilStaged(ada, uploadId, CHUNK_BYTES);
  assert.equal((await ada.call.abortUpload({ uploadId })).freedBytes, BigInt(CHUNK_BYTES));
  assert.equal((await refusal(running.result)).reason, "NO_SUCH_UPLOAD", "no other stream goes on with it");
  running.cut();
  assert.equal((await ada.call.getQuota({})).stagingBytes, 0n);
  assert.equal((await refusal(ada.call.getAttr({ path: "/f" }))).reason, "NO_SUCH_PATH");
});

test("staged bytes count against the quota, and a breach drops them at once (spec 3.5, D16)", async () => {
  const user = await node.signIn("quota@example.com");
  await setQuota("quota@example.com", SIZE);
  const { uploadId } = await user.call.beginUpload({ path: "/a", size: SIZE });
  const running = hangingStream(user, uploadId, 0, CHUNK_BYTES);
  await untilStaged(user, uploadId, CHUNK_BYTES);
  const second = await refusal(user.call.beginUpload({ path: "/b", size: SIZE }));
  assert.equal(second.reason, "QUOTA_EXCEEDED");
  running.cut();
  await assert.rejects(running.result);
  await untilReleased();
  // Between streams nothing is reserved: a smaller file fits beside the staging.
  await user.call.createFile({ path: "/small", data: Buffer.alloc(10) });
  const breach = await refusal(user.upload(stream(uploadId, CHUNK_BYTES, BYTES.length)));
  assert.deepEqual([breach.reason, breach.message], ["QUOTA_EXCEEDED", "storage quota exceeded"]);
  assert.equal((await user.call.getQuota({})).usedBytes, 10n);
  assert.equal((await refusal(user.call.getUpload({ uploadId }))).reason, "NO_SUCH_UPLOAD");
});

test("an upload that fills the quota to its last byte can be finished after a cut before its end (T2)", async () => {
  const user = await node.signIn("brim@example.com");
  const bytes = BigInt(2 * CHUNK_BYTES);
  await setQuota("brim@example.com", bytes);
  const { uploadId } = await user.call.beginUpload({ path: "/a", size: bytes });
  const running = hangingStream(user, uploadId, 0, 2 * CHUNK_BYTES);
  await untilStaged(user, uploadId, 2 * CHUNK_BYTES);
  running.cut();
  await assert.rejects(running.result);
  await user.upload(stream(uploadId, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES));
  const { usedBytes, stagingBytes } = await user.call.getQuota({});
  assert.deepEqual([usedBytes, stagingBytes], [bytes, 0n]);
});

test("what an upload was begun for is decided again at its end: on_exists and if_match (D15)", async () => {
  const { uploadId } = await ada.call.beginUpload({ path: "/g", size: SIZE, onExists: OnExists.FAIL });
  await ada.call.createFile({ path: "/g", data: Buffer.from("came between") });
  assert.equal((await refusal(ada.upload(stream(uploadId, 0, BYTES.length)))).reason, "PATH_EXISTS");
  assert.equal((await refusal(ada.call.getUpload({ uploadId }))).reason, "NO_SUCH_UPLOAD");
  const { etag } = await ada.call.getAttr({ path: "/g" });
  const guarded = await ada.call.beginUpload({ path: "/g", size: SIZE, ifMatch: etag });
  const done = await ada.upload(stream(guarded.uploadId, 0, BYTES.length));
  assert.notEqual(done.attr?.etag, etag);
  assert.equal((await refusal(ada.call.beginUpload({ path: "/g", ifMatch: etag }))).reason, "ETAG_MISMATCH");
});

test("an upload that was idle for 24 hours is dropped, one with a stream is not (D15)", async () => {
  const clock = new ManualClock();
  const own = await startTestNode({ clock });
  try {
    const user = await own.signIn("ada@example.com");
    const { uploadId } = await user.call.beginUpload({ path: "/a", size: SIZE });
    const running = hangingStream(user, uploadId, 0, CHUNK_BYTES);
    await untilStaged(user, uploadId, CHUNK_BYTES);
    running.cut();
    await assert.rejects(running.result);
    while (own.node.service.ledger.openAccounts > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    clock.advance(UPLOAD_IDLE_MS + 60 * 60_000);
    const again = await own.signIn("ada@example.com");
    while ((await again.call.getQuota({})).stagingBytes > 0n) {
      clock.advance(UPLOAD_EXPIRY_INTERVAL_MS);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal((await refusal(again.call.getUpload({ uploadId }))).reason, "NO_SUCH_UPLOAD");
  } finally {
    await own.stop();
  }
});
