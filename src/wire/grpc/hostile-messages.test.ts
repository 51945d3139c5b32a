// Hostile messages: each gets the right status, memory stays bounded, and other clients are served.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { hurriedClock } from "#testing/hurried-clock.ts";
import { FrameFlag, FrameType, grpcHeaders, RawHttp2 } from "#testing/raw-http2.ts";
import { frame } from "#wire/framing/frames.ts";
import { EchoRequestSchema } from "#wire/framing/gen/echo_pb.ts";
import { Code } from "#wire/framing/status.ts";
import { answerOf, MIB, message, messageOf, open, PATH, send, setUp, TIMEOUT, until } from "./hostile-lab.ts";

test(
  "a stream that ends inside a message or its five bytes is INVALID_ARGUMENT, in every kind of call (B-08)",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t);
    const cutOff = [[0], [0, 0, 0, 0], [0, 0, 0, 0, 10, 10, 1], [0, 0, 127, 0, 0]];
    for (const method of ["Unary", "Expand", "Collect", "Converse", "Upload"]) {
      for (const bytes of cutOff) {
        const { grpcStatus } = await send(open(lab, method), Buffer.from(bytes));
        assert.equal(grpcStatus, Code.INVALID_ARGUMENT, `${method} ${bytes.join()}`);
      }
    }
    await lab.othersGoOn();
  },
);

test("a length prefix that lies costs no memory and takes nothing from others", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const before = process.memoryUsage().arrayBuffers;
  const streams = Array.from({ length: 50 }, () => open(lab, "Unary"));
  const answers = streams.map(answerOf);
  for (const stream of streams) stream.write(Buffer.from([0, 0, 0x7f, 0xff, 0xff, 1, 2, 3]));
  await until(() => lab.server.callCount() === 50);
  await delay(50);
  assert(process.memoryUsage().arrayBuffers - before < 32 * MIB);
  assert.equal((await send(open(lab, "Unary"), message(5 * MIB))).grpcStatus, Code.OK);
  for (const stream of streams) stream.end();
  for (const answer of answers) assert.equal((await answer).grpcStatus, Code.INVALID_ARGUMENT);
  const { grpcStatus } = await send(open(lab, "Unary"), Buffer.from([0, 255, 255, 255, 255, 1]));
  assert.equal(grpcStatus, Code.RESOURCE_EXHAUSTED);
  await lab.othersGoOn();
});

test("a message of the largest size passes and one byte more is RESOURCE_EXHAUSTED", TIMEOUT, async (t) => {
  const lab = await setUp(t, { receiveMessageBytes: 100_000 });
  for (const method of ["Unary", "Collect"]) {
    assert.equal((await send(open(lab, method), messageOf(100_000))).grpcStatus, Code.OK);
    assert.equal((await send(open(lab, method), messageOf(100_001))).grpcStatus, Code.RESOURCE_EXHAUSTED);
  }
});

test("a reply of the largest size passes and one byte more is RESOURCE_EXHAUSTED", TIMEOUT, async (t) => {
  const lab = await setUp(t, { sendMessageBytes: 100_000 });
  for (const method of ["Unary", "Converse"]) {
    const exact = await send(open(lab, method), messageOf(100_000));
    assert.deepEqual([exact.grpcStatus, exact.bodyBytes], [Code.OK, 100_005]);
    const over = await send(open(lab, method), messageOf(100_001));
    assert.deepEqual([over.grpcStatus, over.bodyBytes], [Code.RESOURCE_EXHAUSTED, 0]);
  }
});

test("a gzip bomb is RESOURCE_EXHAUSTED, alone and a thousand in one stream", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const bomb = frame(gzipSync(Buffer.alloc(64 * MIB)), true);
  const gzip = { "grpc-encoding": "gzip" };
  for (const method of ["Unary", "Collect", "Upload"]) {
    assert.equal((await send(open(lab, method, gzip), bomb)).grpcStatus, Code.RESOURCE_EXHAUSTED);
  }
  const small = frame(gzipSync(Buffer.alloc(9 * MIB)), true);
  const many = Buffer.concat(Array.from({ length: 1_000 }, () => small));
  const before = process.memoryUsage().arrayBuffers;
  assert.equal((await send(open(lab, "Converse", gzip), many)).grpcStatus, Code.RESOURCE_EXHAUSTED);
  assert(process.memoryUsage().arrayBuffers - before < 64 * MIB);
  await lab.othersGoOn();
});

test("sixty gzip bombs at once are unfolded a few at a time", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  // A body that declares its size is refused unread; these declare a small one.
  const packed = gzipSync(Buffer.alloc(64 * MIB));
  packed.writeUInt32LE(1, packed.length - 4);
  const bomb = frame(packed, true);
  const before = process.memoryUsage().arrayBuffers;
  let most = before;
  const sampler = setInterval(() => {
    most = Math.max(most, process.memoryUsage().arrayBuffers);
  }, 1);
  t.after(() => clearInterval(sampler));
  const bombs = Array.from({ length: 60 }, () => send(open(lab, "Unary", { "grpc-encoding": "gzip" }), bomb));
  for (const answer of bombs) assert.equal((await answer).grpcStatus, Code.RESOURCE_EXHAUSTED);
  assert(most - before < 200 * MIB, `${Math.round((most - before) / MIB)} MiB`);
  await lab.othersGoOn();
});

test(
  "broken gzip, gzip without its header, an unknown encoding and an unknown flag each get their status",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t);
    const broken = frame(Buffer.from("this is not gzip"), true);
    const statusOf = async (
      bytes: Buffer,
      headers: Record<string, string> = {},
    ): Promise<number | undefined> => (await send(open(lab, "Unary", headers), bytes)).grpcStatus;
    assert.equal(await statusOf(broken, { "grpc-encoding": "gzip" }), Code.INVALID_ARGUMENT);
    // gRPC itself defines this status, and the conformance suite requires it.
    assert.equal(await statusOf(frame(gzipSync(message(1)), true)), Code.INTERNAL);
    assert.equal(await statusOf(message(1), { "grpc-encoding": "br" }), Code.UNIMPLEMENTED);
    assert.equal(await statusOf(Buffer.from([2, 0, 0, 0, 0])), Code.INVALID_ARGUMENT);
  },
);

test(
  "invalid protobuf is INVALID_ARGUMENT in every kind of call, and in the sliced form (B-08)",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t);
    for (const method of ["Unary", "Expand", "Collect", "Converse", "Upload"]) {
      const invalid = frame(Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]), false);
      assert.equal((await send(open(lab, method), invalid)).grpcStatus, Code.INVALID_ARGUMENT, method);
    }
  },
);

test("no message and two messages where one is expected are refused", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  assert.equal((await send(open(lab, "Unary"), Buffer.alloc(0))).grpcStatus, Code.UNIMPLEMENTED);
  const two = Buffer.concat([message(1), message(1)]);
  assert.equal((await send(open(lab, "Unary"), two)).grpcStatus, Code.UNIMPLEMENTED);
});

test("an unknown path is UNIMPLEMENTED, a wrong content type 415, another verb 405", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  assert.equal((await send(open(lab, "Nothing"), message(1))).grpcStatus, Code.UNIMPLEMENTED);
  for (const type of ["application/json", "application/grpc-web", "application/grpc+json", "text/plain"]) {
    const { httpStatus } = await send(open(lab, "Unary", { "content-type": type }), message(1));
    assert.equal(httpStatus, 415, type);
  }
  assert.equal((await send(open(lab, "Unary", { ":method": "PUT" }), message(1))).httpStatus, 405);
  for (const type of ["application/grpc", "application/grpc+proto", "application/grpc;x=y"]) {
    const { grpcStatus } = await send(open(lab, "Unary", { "content-type": type }), message(1));
    assert.equal(grpcStatus, Code.OK, type);
  }
});

test("a malformed deadline is INVALID_ARGUMENT, one of zero DEADLINE_EXCEEDED", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  for (const timeout of ["", "1", "m", "-1m", "123456789m", "1.5S", "1x"]) {
    const { grpcStatus } = await send(open(lab, "Unary", { "grpc-timeout": timeout }), message(1));
    assert.equal(grpcStatus, Code.INVALID_ARGUMENT, timeout);
  }
  const slow = frame(toBinary(EchoRequestSchema, create(EchoRequestSchema, { delayMs: 5_000 })), false);
  const { grpcStatus } = await send(open(lab, "Unary", { "grpc-timeout": "0m" }), slow);
  assert.equal(grpcStatus, Code.DEADLINE_EXCEEDED);
});

test(
  "readers that never read hold at most 256 KiB each on the server, and are given up",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, { sendStallMs: 1_500 });
    const before = process.memoryUsage().arrayBuffers;
    const raw = await RawHttp2.connect(lab.port);
    // Wide windows, so that only the socket and the server's own limits hold it back.
    await raw.send(FrameType.SETTINGS, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff]));
    await raw.send(FrameType.WINDOW_UPDATE, 0, 0, Buffer.from([0x7f, 0, 0, 0]));
    raw.stopReading();
    // size = 2^31, chunk_bytes = 2,000,000
    const request = frame(Buffer.from([0x08, 0x80, 0x80, 0x80, 0x80, 0x08, 0x10, 0x80, 0x89, 0x7a]), false);
    for (let i = 0; i < 50; i++) {
      await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, i * 2 + 1, grpcHeaders(`${PATH}Download`));
      await raw.send(FrameType.DATA, FrameFlag.END_STREAM, i * 2 + 1, request);
    }
    await until(() => lab.server.callCount() === 50);
    await lab.othersGoOn();
    assert(process.memoryUsage().arrayBuffers - before < 64 * MIB);
    await until(() => lab.server.callCount() === 0);
    raw.close();
    await lab.othersGoOn();
  },
);

test("large unary replies that nobody reads are bounded in sum", TIMEOUT, async (t) => {
  const lab = await setUp(t, { heldReplyBytes: 20 * MIB });
  const raw = await RawHttp2.connect(lab.port);
  // A window of zero: replies wait whole.
  await raw.send(FrameType.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
  const request = message(2 * MIB);
  for (let id = 1; id <= 23; id += 2) {
    await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, grpcHeaders(`${PATH}Unary`));
    for (let at = 0; at < request.length; at += 16_384) {
      const end = Math.min(at + 16_384, request.length);
      const flags = end === request.length ? FrameFlag.END_STREAM : 0;
      await raw.send(FrameType.DATA, flags, id, request.subarray(at, end));
    }
  }
  // Refused calls end at once, without a message: headers that end the stream. Four replies fit beside a
  // fifth request.
  const refused = (): number =>
    raw.frames.filter(({ type, flags }) => type === FrameType.HEADERS && (flags & FrameFlag.END_STREAM) !== 0)
      .length;
  await until(() => refused() >= 8);
  await delay(100);
  assert.equal(refused(), 8);
  raw.close();
  await until(() => lab.server.callCount() === 0);
  await lab.othersGoOn();
});

test(
  "a connection that does not read its large replies gets no further calls, and others do",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, { heldPerConnectionBytes: 8 * MIB });
    const raw = await RawHttp2.connect(lab.port);
    await raw.send(FrameType.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
    const call = async (id: number, request: Buffer): Promise<void> => {
      await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, grpcHeaders(`${PATH}Unary`));
      for (let at = 0; at < request.length; at += 16_384) {
        const end = Math.min(at + 16_384, request.length);
        await raw.send(
          FrameType.DATA,
          end === request.length ? FrameFlag.END_STREAM : 0,
          id,
          request.subarray(at, end),
        );
      }
    };
    for (const id of [1, 3, 5]) await call(id, message(2 * MIB));
    const answered = (id: number) =>
      raw.frame(({ type, streamId }) => type === FrameType.HEADERS && streamId === id);
    for (const id of [1, 3, 5]) await answered(id);
    await call(7, message(1));
    const refused = await answered(7);
    assert.equal((refused?.flags ?? 0) & FrameFlag.END_STREAM, FrameFlag.END_STREAM);
    await lab.othersGoOn();
    raw.close();
    await until(() => lab.server.callCount() === 0);
  },
);

test(
  "a writer below the minimum rate is ended, whichever kind of call it trickles into",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, { progressWindowMs: 1_000, minimumBytesPerSecond: 100 });
    const trickle = async (method: string): Promise<number | undefined> => {
      const stream = open(lab, method);
      const answer = answerOf(stream);
      const bytes = message(10_000);
      for (let at = 0; at < bytes.length && !stream.destroyed && !stream.closed; at++) {
        stream.write(bytes.subarray(at, at + 1));
        await delay(100);
      }
      return (await answer).grpcStatus;
    };
    const statuses = await Promise.all(["Unary", "Expand", "Collect", "Upload"].map(trickle));
    for (const status of statuses) assert.equal(status, Code.DEADLINE_EXCEEDED);
  },
);

test("a writer that pauses between messages is left alone", TIMEOUT, async (t) => {
  const lab = await setUp(t, { progressWindowMs: 50, minimumBytesPerSecond: 1_000_000 }, hurriedClock(10));
  const stream = open(lab, "Collect");
  const answer = answerOf(stream);
  stream.write(message(10));
  await delay(500);
  stream.end(message(10));
  assert.equal((await answer).grpcStatus, Code.OK);
});
