// Uploads over a real connection into real storage: quota to the byte, reserve, and breaches without traces.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { ManualClock } from "#base/clock.ts";
import { CHUNK_BYTES, UPLOAD_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import { until } from "#testing/until.ts";
import { Code } from "#wire/framing/status.ts";
import {
  bytesOf,
  chunk,
  header,
  parts,
  refusal,
  startTestNode,
  type TestNode,
  type TestUser,
  type UploadPart,
} from "./node.fixture.ts";

const RESERVE = 21_474_836_480n;
let node: TestNode;
let users = 0;
before(async () => {
  node = await startTestNode();
});
after(() => node.stop());

/** A new user, with a quota where one is given. */
const newUser = async (quotaBytes?: bigint): Promise<TestUser> => {
  const user = await node.signIn(`user${users++}@example.com`);
  if (quotaBytes !== undefined) await setQuota(user, quotaBytes);
  return user;
};
const setQuota = async (user: TestUser, quotaBytes: bigint, at = node) => {
  const reply = await at.anonymous.setQuota(
    { username: user.email, quotaBytes },
    {
      metadata: {
        "x-admin-password-hash": "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918",
      },
    },
  );
  assert.deepEqual([reply.success, reply.error], [true, ""]);
};
const usedBytes = async (user: TestUser) => (await user.call.getQuota({})).usedBytes;
const nothingReserved = () => {
  assert.equal(node.node.service.ledger.promisedBytes, 0n);
  assert.equal(node.node.service.ledger.openAccounts, 0);
};

test("a file comes back as it was sent, with its checksum, size, time and the quota's numbers (D15)", async () => {
  const user = await newUser();
  const data = randomBytes(9_000_001);
  const reply = await user.upload(parts("/a.bin", data, CHUNK_BYTES, { mtimeMs: 1_234_567_890_123n }));
  assert.equal(reply.bytesWritten, 9_000_001n);
  assert.equal(reply.quotaUsed, 9_000_001n);
  assert.equal(reply.quotaLimit, 17_179_869_184n);
  assert.equal(reply.attr?.crc32, crc32(data));
  assert.equal(reply.attr?.mtimeMs, 1_234_567_890_123n);
  assert.equal(reply.attr?.path, "/a.bin");
  assert.ok(bytesOf(await user.download({ path: "/a.bin" })).equals(data));
});

test("messages of any payload from 1 byte to 4 MiB are taken and give the same file (T7)", async () => {
  const user = await newUser();
  const data = randomBytes(5_000_000);
  const odd = async function* (): AsyncGenerator<UploadPart> {
    yield header("/odd", { size: BigInt(data.length), sizeKnown: true });
    let at = 0;
    for (const size of [1, 1, 7, 65_535, 262_145, UPLOAD_MESSAGE_MAX_BYTES, 10, 1e7]) {
      if (at >= data.length) return;
      const slice = data.subarray(at, at + size);
      yield chunk(at, slice, crc32(slice));
      at += slice.length;
    }
  };
  const reply = await user.upload(odd());
  assert.equal(reply.attr?.crc32, crc32(data));
  assert.ok(bytesOf(await user.download({ path: "/odd" })).equals(data));
});

test("a payload of one byte above 4 MiB is refused and leaves nothing (T7)", async () => {
  const user = await newUser();
  const refused = await refusal(
    user.upload([header("/big"), chunk(0, Buffer.alloc(UPLOAD_MESSAGE_MAX_BYTES + 1))]),
  );
  assert.deepEqual([refused.code, refused.reason], [Code.INVALID_ARGUMENT, "BAD_ARGUMENT"]);
  assert.equal((await refusal(user.call.getAttr({ path: "/big" }))).reason, "NO_SUCH_PATH");
  nothingReserved();
});

for (const known of [true, false]) {
  const kind = known ? "known" : "unknown";
  test(`an upload of ${kind} size may fill the quota to the last byte and not one more (spec 4.6.2, T2)`, async () => {
    const user = await newUser(1_000_000n);
    await user.upload(parts("/first", randomBytes(400_000), 100_000, { sizeKnown: known }));
    const refused = await refusal(
      user.upload(parts("/over", randomBytes(600_001), 100_000, { sizeKnown: known })),
    );
    assert.deepEqual(
      [refused.code, refused.reason, refused.message],
      [Code.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", "storage quota exceeded"],
    );
    assert.equal(refused.error.metadata.get("svc-quota-bytes"), "1000000");
    assert.equal(refused.error.metadata.get("svc-used-bytes"), "400000");
    assert.equal(await usedBytes(user), 400_000n);
    await user.upload(parts("/exact", randomBytes(600_000), 100_000, { sizeKnown: known }));
    assert.equal(await usedBytes(user), 1_000_000n);
    nothingReserved();
  });
}

test("at the quota no file is made, not even an empty one; one byte below it is (spec 4.6.1)", async () => {
  const user = await newUser(10n);
  await user.upload(parts("/nine", randomBytes(9), 9));
  await user.upload(parts("/empty", Buffer.alloc(0), 1));
  await user.upload(parts("/one", randomBytes(1), 1));
  assert.equal((await refusal(user.upload(parts("/none", Buffer.alloc(0), 1)))).reason, "QUOTA_EXCEEDED");
  assert.equal((await refusal(user.call.createFile({ path: "/none" }))).reason, "QUOTA_EXCEEDED");
  assert.equal((await refusal(user.call.createDirectory({ path: "/none" }))).reason, "QUOTA_EXCEEDED");
});

test("a size that does not fit is refused before the first byte (D15)", async () => {
  const user = await newUser(1_000n);
  let sent = 0;
  const upload = async function* (): AsyncGenerator<UploadPart> {
    yield header("/big", { size: 1_001n, sizeKnown: true });
    await delay(300);
    sent++;
    yield chunk(0, randomBytes(1_001));
  };
  const refused = await refusal(user.upload(upload()));
  assert.equal(refused.reason, "QUOTA_EXCEEDED");
  assert.equal(sent, 0);
});

test("a breach in the middle restores the sizes of root and folder and leaves no file (spec 3.5)", async () => {
  const user = await newUser(3_000_000n);
  await user.call.createDirectory({ path: "/d" });
  await user.upload(parts("/d/kept", randomBytes(1_000_000), 1_000_000));
  const before = [await user.call.getAttr({ path: "/" }), await user.call.getAttr({ path: "/d" })];
  const refused = await refusal(
    user.upload(parts("/d/big", randomBytes(2_000_001), 500_000, { sizeKnown: false })),
  );
  assert.equal(refused.message, "storage quota exceeded");
  assert.deepEqual([await user.call.getAttr({ path: "/" }), await user.call.getAttr({ path: "/d" })], before);
  assert.equal((await user.call.listDir({ path: "/d" })).entries.length, 1);
  assert.equal(node.node.storage.facts().stagingBytes, 0);
  nothingReserved();
});

test("of 200 uploads at once the quota takes as many as fit, and not a byte more (spec 4.6.2, A-15)", async () => {
  for (const known of [true, false]) {
    const user = await newUser(1_000_000n);
    const data = randomBytes(30_000);
    const results = await Promise.allSettled(
      Array.from({ length: 200 }, (_, i) => user.upload(parts(`/f${i}`, data, 7_000, { sizeKnown: known }))),
    );
    const done = results.filter((result) => result.status === "fulfilled").length;
    assert.equal(await usedBytes(user), BigInt(done * 30_000));
    assert.ok(done <= 33);
    // Known sizes are reserved whole: none starves another, so exactly the possible number fits.
    if (known) assert.equal(done, 33);
    assert.equal((await user.call.listDir({ path: "/" })).entries.length, done);
    nothingReserved();
  }
});

test("free space at the reserve refuses every write with the words of spec 7, one byte above takes one byte (4.6.3)", async () => {
  const user = await newUser();
  await user.call.createFile({ path: "/f", data: Buffer.from("x") });
  try {
    node.disk.freeBytes = RESERVE;
    const calls: readonly Promise<unknown>[] = [
      user.upload(parts("/new", randomBytes(5), 5)),
      user.upload(parts("/new", randomBytes(5), 5, { sizeKnown: false })),
      user.call.createFile({ path: "/new", data: randomBytes(5) }),
      user.call.writeFile({ path: "/f", offset: 1n, data: randomBytes(5) }),
    ];
    for (const refused of await Promise.all(calls.map((call) => refusal(call)))) {
      assert.deepEqual([refused.code, refused.reason], [Code.RESOURCE_EXHAUSTED, "DISK_RESERVE"]);
      assert.match(
        refused.message,
        /^fileserver storage limit reached: cannot write [05] bytes \(usable free space: 0 bytes, 20 GiB reserved for system safety\)$/,
      );
    }
    assert.equal((await refusal(user.call.createDirectory({ path: "/d" }))).reason, "DISK_RESERVE");
    node.disk.freeBytes = RESERVE + 5n;
    assert.equal((await refusal(user.upload(parts("/new", randomBytes(6), 6)))).reason, "DISK_RESERVE");
    await user.upload(parts("/new", randomBytes(5), 5));
    node.disk.freeBytes = 0n;
    await user.call.deleteFile({ path: "/new" });
  } finally {
    node.disk.freeBytes = 2n ** 45n;
  }
  nothingReserved();
});

test("space that vanishes during an upload stops it at the next chunk (spec 4.6.3)", async () => {
  const user = await newUser();
  const upload = async function* (): AsyncGenerator<UploadPart> {
    yield header("/f", { size: 2_000_000n, sizeKnown: true });
    yield chunk(0, randomBytes(1_000_000));
    await delay(100);
    node.disk.freeBytes = RESERVE + 999_999n;
    yield chunk(1_000_000, randomBytes(1_000_000));
  };
  try {
    assert.equal((await refusal(user.upload(upload()))).reason, "DISK_RESERVE");
  } finally {
    node.disk.freeBytes = 2n ** 45n;
  }
  assert.equal(await usedBytes(user), 0n);
  nothingReserved();
});

test("a replaced file has the new content whole, and the old one stays until then (A-02)", async () => {
  const user = await newUser();
  const old = randomBytes(1_500_000);
  await user.upload(parts("/f", old, 500_000));
  const cut = await refusal(
    user.upload([header("/f", { size: 10n, sizeKnown: true }), chunk(0, randomBytes(5))]),
  );
  assert.equal(cut.reason, "BAD_ARGUMENT");
  assert.ok(bytesOf(await user.download({ path: "/f" })).equals(old));
  const fresh = randomBytes(700);
  const reply = await user.upload(parts("/f", fresh, 500_000));
  assert.equal(reply.quotaUsed, 700n);
  assert.ok(bytesOf(await user.download({ path: "/f" })).equals(fresh));
});

test("a client that goes away in the middle leaves nothing behind (A-05, B-01)", async () => {
  const user = await newUser();
  const gone = new AbortController();
  const upload = async function* (): AsyncGenerator<UploadPart> {
    yield header("/f", { size: 2_000_000n, sizeKnown: true });
    yield chunk(0, randomBytes(1_000_000));
    // A call that is cancelled before the server has seen it would prove nothing.
    for (let i = 0; i < 1_000 && node.node.service.ledger.openAccounts === 0; i++) await delay(10);
    gone.abort();
    await new Promise<never>(() => undefined);
  };
  await assert.rejects(user.call.uploadFile(upload(), { signal: gone.signal }));
  for (let i = 0; i < 1_000 && node.node.service.ledger.openAccounts > 0; i++) await delay(10);
  nothingReserved();
  assert.equal((await user.call.listDir({ path: "/" })).entries.length, 0);
});

test("a session that ends stops its upload at the next chunk (spec 3.4, 5.3)", async () => {
  const user = await newUser();
  const other = await node.signIn(user.email);
  const upload = async function* (): AsyncGenerator<UploadPart> {
    yield header("/f");
    yield chunk(0, randomBytes(1_000));
    await delay(50);
    await other.call.endSession({ everywhere: true });
    yield chunk(1_000, randomBytes(1_000));
    yield chunk(2_000, randomBytes(1_000));
  };
  const refused = await refusal(user.upload(upload()));
  assert.deepEqual([refused.code, refused.reason], [Code.UNAUTHENTICATED, "SESSION_UNKNOWN"]);
  const again = await node.signIn(user.email);
  assert.equal((await again.call.listDir({ path: "/" })).entries.length, 0);
});

test("each chunk of an upload counts as use of its session, so that a long one never idles out (spec 3.4)", async () => {
  const clock = new ManualClock();
  const timed = await startTestNode({ clock });
  try {
    const user = await timed.signIn("slow@example.com");
    const upload = async function* (): AsyncGenerator<UploadPart> {
      yield header("/f", { size: 4_000n, sizeKnown: true });
      for (let sent = 0; sent < 4_000; sent += 1_000) {
        clock.advance(14 * 60_000);
        yield chunk(sent, randomBytes(1_000));
        await until(() => timed.node.telemetry.counts().bytesWritten === BigInt(sent + 1_000));
      }
    };
    assert.equal((await user.upload(upload())).bytesWritten, 4_000n);
  } finally {
    await timed.stop();
  }
});

test("an upload that waits for a client whose session has run out is given up, and holds nothing (spec 3.4)", async () => {
  const clock = new ManualClock();
  const timed = await startTestNode({ clock });
  try {
    const user = await timed.signIn("idle@example.com");
    const upload = async function* (): AsyncGenerator<UploadPart> {
      yield header("/f", { size: 2_000_000n, sizeKnown: true });
      yield chunk(0, randomBytes(1_000_000));
      await new Promise<never>(() => undefined);
    };
    const refused = refusal(user.upload(upload()));
    for (let i = 0; i < 500 && timed.node.telemetry.counts().bytesWritten < 1_000_000n; i++) await delay(10);
    assert.equal(timed.node.service.ledger.openAccounts, 1);
    clock.advance(17 * 60_000);
    assert.equal((await refused).reason, "SESSION_IDLE");
    assert.equal(timed.node.service.ledger.openAccounts, 0);
  } finally {
    await timed.stop();
  }
});

test("one stream more than a user may have is refused, and others are not held up by it (D17)", async () => {
  const small = await startTestNode({
    options: { limits: { registerPerMinute: 100, streamsPerUser: 2 } },
  });
  try {
    const [user, other] = [await small.signIn("a@example.com"), await small.signIn("b@example.com")];
    const held = Promise.withResolvers<void>();
    const slow = (path: string) =>
      user.upload(
        (async function* (): AsyncGenerator<UploadPart> {
          yield header(path);
          await held.promise;
        })(),
      );
    const running = [slow("/1"), slow("/2")];
    for (let i = 0; i < 200 && small.node.service.ledger.openAccounts === 0; i++) await delay(5);
    await delay(50);
    const refused = await refusal(user.upload(parts("/3", randomBytes(5), 5)));
    assert.deepEqual([refused.code, refused.reason], [Code.RESOURCE_EXHAUSTED, "RATE_LIMITED"]);
    await other.upload(parts("/1", randomBytes(5), 5));
    held.resolve();
    await Promise.all(running);
    await user.upload(parts("/3", randomBytes(5), 5));
  } finally {
    await small.stop();
  }
});

test("bytes count when a chunk is in, operations when the stream ends, refusals by policy not at all as failures (spec 4.6.4, T4)", async () => {
  const own = await startTestNode();
  try {
    const user = await own.signIn("a@example.com");
    await setQuota(user, 1_000_000n, own);
    await user.upload(parts("/f", randomBytes(300_000), 100_000));
    await refusal(user.upload(parts("/g", randomBytes(800_000), 100_000)));
    await refusal(user.upload(parts("/x/y", randomBytes(1), 1)));
    const { bytesWritten, writeOps, failedWrites } = own.node.telemetry.counts();
    assert.deepEqual([bytesWritten, writeOps, failedWrites], [300_000n, 3, 0]);
  } finally {
    await own.stop();
  }
});
