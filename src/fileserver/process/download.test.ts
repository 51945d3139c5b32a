// Downloads over a real connection: chunk boundaries, checksums, ranges, slow readers, never a wrong byte.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { open, readdir, stat } from "node:fs/promises";
import { connect } from "node:http2";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { CHUNK_BYTES } from "#base/limits.ts";
import { Code } from "#wire/framing/status.ts";
import { DownloadRequestSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { bytesOf, parts, refusal, startTestNode, type TestNode, type TestUser } from "./node.fixture.ts";

let node: TestNode;
let user: TestUser;
const BIG = randomBytes(9_300_000);
before(async () => {
  node = await startTestNode();
  user = await node.signIn("reader@example.com");
  await user.upload(parts("/big", BIG, CHUNK_BYTES));
  await user.upload(parts("/small", BIG.subarray(0, 1_000), CHUNK_BYTES));
  await user.upload(parts("/empty", Buffer.alloc(0), CHUNK_BYTES));
});
after(() => node.stop());

test("the Attr comes first, then chunks of 4,000,000 bytes with their checksums (T7, D15)", async () => {
  const [first, ...rest] = await user.download({ path: "/big" });
  assert.equal(first?.part.case, "attr");
  const chunks = rest.map(({ part }) => {
    assert.ok(part.case === "chunk");
    return part.value;
  });
  assert.deepEqual(
    chunks.map((chunk) => [Number(chunk.offset), chunk.data.length]),
    [
      [0, 4_000_000],
      [4_000_000, 4_000_000],
      [8_000_000, 1_300_000],
    ],
  );
  for (const chunk of chunks) assert.equal(chunk.crc32, crc32(chunk.data));
  assert.ok(bytesOf(rest).equals(BIG));
});

for (const [offset, length, sizes] of [
  [1, 0, [3_999_999, 4_000_000, 1_300_000]],
  [3_999_999, 2, [1, 1]],
  [4_000_000, 10, [10]],
  [262_143, 262_146, [262_146]],
  [9_299_999, 0, [1]],
  [9_300_000, 0, []],
  [9_299_000, 5_000, [1_000]],
  [0, 2n ** 64n - 1n, [4_000_000, 4_000_000, 1_300_000]],
] as const) {
  test(`a range from ${offset} of ${length} bytes is cut at multiples of 4,000,000 and has its own checksums (D15)`, async () => {
    const replies = await user.download({ path: "/big", offset: BigInt(offset), length: BigInt(length) });
    const chunks = replies.flatMap(({ part }) => (part.case === "chunk" ? [part.value] : []));
    assert.deepEqual(
      chunks.map((chunk) => chunk.data.length),
      [...sizes],
    );
    for (const chunk of chunks) assert.equal(chunk.crc32, crc32(chunk.data));
    const end = length === 0 ? BIG.length : Number(BigInt(offset) + BigInt(length));
    assert.ok(bytesOf(replies).equals(BIG.subarray(offset, end)));
  });
}

test("an empty file has an Attr and no chunk; a small one has one", async () => {
  assert.equal((await user.download({ path: "/empty" })).length, 1);
  assert.ok(bytesOf(await user.download({ path: "/small" })).equals(BIG.subarray(0, 1_000)));
});

test("bad downloads get their answers (D1)", async () => {
  const etag = (await user.call.getAttr({ path: "/small" })).etag;
  const answers: [object, number, string][] = [
    [{ path: "/small", offset: 1_001n }, Code.INVALID_ARGUMENT, "BAD_ARGUMENT"],
    [{ path: "/small", ifMatch: `${etag}x` }, Code.FAILED_PRECONDITION, "ETAG_MISMATCH"],
    [{ path: "/none" }, Code.NOT_FOUND, "NO_SUCH_PATH"],
    [{ path: "/" }, Code.FAILED_PRECONDITION, "IS_DIRECTORY"],
    [{ path: "/small", root: "other@example.com" }, Code.PERMISSION_DENIED, "NOT_SHARED"],
    [{ path: "small" }, Code.INVALID_ARGUMENT, "BAD_ARGUMENT"],
  ];
  for (const [request, code, reason] of answers) {
    const refused = await refusal(user.download(request as { path: string }));
    assert.deepEqual([refused.code, refused.reason], [code, reason]);
  }
  await user.download({ path: "/small", ifMatch: etag });
});

test("a file that is replaced or deleted while it is read comes as it was at the start", async () => {
  const data = randomBytes(9_000_000);
  await user.upload(parts("/turn", data, CHUNK_BYTES));
  const got: Uint8Array[] = [];
  for await (const reply of user.call.downloadFile({ path: "/turn" })) {
    if (reply.part.case !== "chunk") continue;
    got.push(reply.part.value.data);
    if (got.length === 1) await user.upload(parts("/turn", randomBytes(50), CHUNK_BYTES));
    if (got.length === 2) await user.call.deleteFile({ path: "/turn" });
  }
  assert.ok(Buffer.concat(got).equals(data));
});

test("a session that ends stops its download at the next chunk (spec 5.3)", async () => {
  const own = await node.signIn("leaver@example.com");
  await own.upload(parts("/f", randomBytes(40_000_000), CHUNK_BYTES));
  let chunks = 0;
  const refused = await refusal(
    (async () => {
      for await (const reply of own.call.downloadFile({ path: "/f" })) {
        if (reply.part.case === "chunk" && ++chunks === 1) await own.call.endSession({});
      }
    })(),
  );
  assert.equal(refused.reason, "SESSION_UNKNOWN");
  assert.ok(chunks < 10);
});

/** Every chunk file below the data folder, with its size. */
async function chunkFiles(): Promise<{ path: string; size: number }[]> {
  const found: { path: string; size: number }[] = [];
  for (const entry of await readdir(node.dataFolder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || /sqlite|\.db|json|lock/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    found.push({ path, size: (await stat(path)).size });
  }
  return found;
}

test("stored bytes that rot end the download with DATA_LOSS before a wrong byte (A-08)", async () => {
  const victim = await node.signIn("victim@example.com");
  const data = randomBytes(3_777_777);
  await victim.upload(parts("/f", data, CHUNK_BYTES));
  const stored = (await chunkFiles()).find(({ size }) => size === 3_777_777);
  assert.ok(stored, "the chunk file is there");
  const handle = await open(stored.path, "r+");
  const flipped = Buffer.from([~(data[2_000_000] ?? 0) & 255]);
  await handle.write(flipped, 0, 1, 2_000_000);
  await handle.close();
  const got: Uint8Array[] = [];
  const call = victim.channel.slicedDownload(
    (await import("#wire/proto/gen/grove/v1/file_server_pb.ts")).FileServer.method.downloadFile,
    "chunk.data",
    { path: "/f" },
    { metadata: victim.metadata },
  );
  const refused = await refusal(
    (async () => {
      for await (const message of call) {
        for (;;) {
          const slice = await message.payload.read();
          if (slice === null) break;
          got.push(Buffer.from(slice));
        }
      }
    })(),
  );
  assert.deepEqual([refused.code, refused.reason], [Code.DATA_LOSS, "CORRUPT"]);
  const received = Buffer.concat(got);
  assert.ok(received.length <= 2_000_000);
  assert.ok(received.equals(data.subarray(0, received.length)));
  const beside = await refusal(victim.call.readFile({ path: "/f", offset: 1_999_990n, length: 100 }));
  assert.equal(beside.reason, "CORRUPT");
  assert.equal((await user.download({ path: "/small" })).length, 2);
});

test("64 clients that never read cost little memory and hold nobody up (B-02)", async () => {
  const reader = await node.signIn("slow@example.com");
  await reader.upload(parts("/f", randomBytes(16_000_000), CHUNK_BYTES));
  globalThis.gc?.();
  const beforeBytes = process.memoryUsage().rss;
  const session = connect(`http://${node.address}`, { settings: { initialWindowSize: 0 } });
  const body = Buffer.from(toBinary(DownloadRequestSchema, create(DownloadRequestSchema, { path: "/f" })));
  const framed = Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]);
  const streams = Array.from({ length: 64 }, () => {
    const stream = session.request({
      ":method": "POST",
      ":path": "/grove.v1.FileServer/DownloadFile",
      "content-type": "application/grpc",
      te: "trailers",
      authorization: `Bearer ${reader.token}`,
    });
    stream.on("error", () => undefined);
    stream.pause();
    stream.end(framed);
    return stream;
  });
  await Promise.all(
    streams.map((stream) => once(stream, "response", { signal: AbortSignal.timeout(60_000) })),
  );
  // The server's read-ahead for them.
  await delay(500);
  const grownBytes = process.memoryUsage().rss - beforeBytes;
  assert.ok(grownBytes < 100e6, `${Math.round(grownBytes / 1e6)} MB`);
  assert.ok(bytesOf(await user.download({ path: "/big" })).equals(BIG));
  for (const stream of streams) stream.close();
  session.destroy();
});

test("a slow reader's download ends with its session within a chunk, and is not whole", async () => {
  const reader = await node.signIn("slow-leaver@example.com");
  await reader.upload(parts("/f", randomBytes(3_900_000), CHUNK_BYTES));
  const session = connect(`http://${node.address}`, { settings: { initialWindowSize: 65_535 } });
  const body = Buffer.from(toBinary(DownloadRequestSchema, create(DownloadRequestSchema, { path: "/f" })));
  const stream = session.request({
    ":method": "POST",
    ":path": "/grove.v1.FileServer/DownloadFile",
    "content-type": "application/grpc",
    te: "trailers",
    authorization: `Bearer ${reader.token}`,
  });
  stream.on("error", () => undefined);
  stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]));
  let received = 0;
  const begun = Promise.withResolvers<void>();
  const closed = new Promise<void>((resolve) => stream.once("close", () => resolve()));
  stream.on("data", (bytes: Buffer) => {
    if (received === 0) stream.pause();
    received += bytes.length;
    begun.resolve();
  });
  await begun.promise;
  await reader.call.endSession({});
  stream.resume();
  await closed;
  assert.ok(received < 3_000_000, `${received} bytes came`);
  session.destroy();
});
