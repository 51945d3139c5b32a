// Calls that a loop does not begin, although the main thread has judged them: each is given back there.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { create, toBinary } from "@bufbuild/protobuf";
import { FrameFlag, FrameType, grpcHeaders, RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import { EchoRequestSchema, EchoService } from "#wire/framing/gen/echo_pb.ts";
import { REFUSALS_PER_CONNECTION } from "#wire/framing/limits.ts";
import { echoHandlers } from "#wire/grpc/echo-service.ts";
import { LoopServer } from "./loop-server.ts";

const PATH = `/${EchoService.typeName}/Unary`;
/** A reply of this size counts as held until the client has taken it, which needs more than its first window. */
const REPLY_BYTES = 100_000;
const REFUSED = 50;

async function setUp(t: TestContext): Promise<{ server: LoopServer; port: number }> {
  const server = new LoopServer({
    loops: 1,
    limits: { heldPerConnectionBytes: 1.5 * REPLY_BYTES },
    gate: { judge: () => ({ kind: "user", party: "ada" }), refused: () => [], isNode: () => false },
    interceptors: [],
    spawn: (start) => new Worker(new URL("./echo-loop.fixture.ts", import.meta.url), { workerData: start }),
  });
  server.addService(EchoService, echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  return { server, port };
}

async function call(raw: RawHttp2, streamId: number, dataBytes: number): Promise<void> {
  await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, streamId, grpcHeaders(PATH));
  const message = toBinary(EchoRequestSchema, create(EchoRequestSchema, { data: new Uint8Array(dataBytes) }));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  const body = Buffer.concat([head, message]);
  for (let at = 0; at < body.length; at += 16_384) {
    const isLast = at + 16_384 >= body.length;
    await raw.send(
      FrameType.DATA,
      isLast ? FrameFlag.END_STREAM : 0,
      streamId,
      body.subarray(at, at + 16_384),
    );
  }
}

async function answer(raw: RawHttp2, streamId: number): Promise<void> {
  const frame = await raw.frame((one) => one.type === FrameType.HEADERS && one.streamId === streamId);
  assert.ok(frame !== undefined, "the connection was closed");
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(5);
}

test("a call refused because its client does not read replies leaves its place", {
  timeout: 60_000,
}, async (t) => {
  const { server, port } = await setUp(t);
  const raw = await RawHttp2.connect(port);
  t.after(() => raw.close());
  await call(raw, 1, REPLY_BYTES);
  await answer(raw, 1);
  for (let at = 1; at <= REFUSED; at++) await call(raw, 2 * at + 1, 1);
  await answer(raw, 2 * REFUSED + 1);
  // Only the one whose reply waits for its client.
  await until(() => server.callCount() === 1);
  raw.close();
  await until(() => server.callCount() === 0);
  assert.equal(server.connectionCount(), 0);
});

test("calls that a client gives up before their judgement do not cost it its connection", {
  timeout: 60_000,
}, async (t) => {
  const { server, port } = await setUp(t);
  const raw = await RawHttp2.connect(port);
  t.after(() => raw.close());
  const cancel = Buffer.from([0, 0, 0, 8]);
  const frames: Buffer[] = [];
  for (let at = 0; at < 2 * REFUSALS_PER_CONNECTION; at++) {
    frames.push(rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, 2 * at + 1, grpcHeaders(PATH)));
    frames.push(rawFrame(FrameType.RST_STREAM, 0, 2 * at + 1, cancel));
  }
  await raw.write(Buffer.concat(frames));
  await call(raw, 1_001, 1);
  await answer(raw, 1_001);
  await until(() => server.callCount() <= 1);
  assert.ok(!raw.frames.some(({ type }) => type === FrameType.GOAWAY));
});
