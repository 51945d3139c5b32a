// Slow uplinks: requests that wait behind each other on one connection arrive, and those that trickle do not.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { FrameFlag, FrameType, grpcHeaders, type RawFrame, RawHttp2 } from "#testing/raw-http2.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { DEFAULT_SERVER_LIMITS } from "#wire/framing/limits.ts";
import { echoHandlers } from "./echo-service.ts";
import { message, PATH, TIMEOUT } from "./hostile-lab.ts";
import { GrpcServer } from "./server.ts";

const { minimumBytesPerSecond, progressWindowMs, requestMs } = DEFAULT_SERVER_LIMITS;
const WINDOW_SECONDS = progressWindowMs / 1_000;

interface Lab {
  open(streamId: number, method: string): Promise<void>;
  send(streamId: number, bytes: Uint8Array, isLast?: boolean): Promise<void>;
  /** Lets a second pass once the server has read all that was sent before. */
  second(): Promise<void>;
  /** The first answer on a stream: "message" or "refusal". */
  answer(streamId: number): Promise<string>;
  /** Streams that were refused so far. */
  refused(): number[];
}

const isRefusal = ({ type, flags }: RawFrame): boolean =>
  type === FrameType.HEADERS && (flags & FrameFlag.END_STREAM) !== 0;

async function setUp(t: TestContext): Promise<Lab> {
  const clock = new ManualClock();
  const server = new GrpcServer({ clock });
  server.addService(EchoService, echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const raw = await RawHttp2.connect(port);
  t.after(async () => {
    raw.close();
    await server.close();
  });
  // Room for all answers.
  await raw.send(FrameType.WINDOW_UPDATE, 0, 0, Buffer.from([0, 0x10, 0, 0]));
  let mark = 0;
  return {
    open: (streamId, method) =>
      raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, streamId, grpcHeaders(`${PATH}${method}`)),
    send: (streamId, bytes, isLast = false) =>
      raw.send(FrameType.DATA, isLast ? FrameFlag.END_STREAM : 0, streamId, bytes),
    second: async () => {
      const own = ++mark;
      await raw.send(FrameType.PING, 0, 0, Buffer.alloc(8, own));
      await raw.frame(({ type, payload }) => type === FrameType.PING && payload[0] === own);
      clock.advance(1_000);
    },
    answer: async (id) => {
      const first = await raw.frame(
        (one) => one.streamId === id && (one.type === FrameType.DATA || isRefusal(one)),
      );
      return first?.type === FrameType.DATA ? "message" : "refusal";
    },
    refused: () => raw.frames.filter(isRefusal).map(({ streamId }) => streamId),
  };
}

test("requests that wait behind each other on a slow uplink all arrive", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const request = message(2 * minimumBytesPerSecond * (WINDOW_SECONDS + 2));
  const streams = [1, 3, 5, 7];
  for (const stream of streams) await lab.open(stream, "Unary");
  for (const stream of streams) {
    for (let at = 0; at < request.length; ) {
      const end = at + 2 * minimumBytesPerSecond;
      await lab.send(stream, request.subarray(at, end), end >= request.length);
      await lab.second();
      at = end;
    }
  }
  for (const stream of streams) assert.equal(await lab.answer(stream), "message");
});

test("a connection that trickles across many calls loses them all", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const request = message(10_000);
  const streams = Array.from({ length: 90 }, (_, at) => 2 * at + 1);
  for (const stream of streams) await lab.open(stream, stream % 4 === 1 ? "Unary" : "Collect");
  for (let second = 0; second < WINDOW_SECONDS + 2; second++) {
    for (const stream of streams) await lab.send(stream, request.subarray(second, second + 1));
    await lab.second();
  }
  assert.deepEqual(lab.refused(), streams);
});

test(
  "a call that is silent for two minutes inside its message ends beside one that moves",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t);
    const request = message(2 * minimumBytesPerSecond * (requestMs / 1_000 + 10));
    for (const stream of [1, 3, 5]) await lab.open(stream, "Collect");
    for (const stream of [1, 3]) await lab.send(stream, request.subarray(0, 100));
    let at = 0;
    const moves = async (seconds: number): Promise<void> => {
      for (let second = 0; second < seconds; second++) {
        const end = at + 2 * minimumBytesPerSecond;
        await lab.send(5, request.subarray(at, end));
        await lab.second();
        at = end;
      }
    };
    await moves(requestMs / 2_000);
    await lab.send(3, request.subarray(100, 101));
    await moves(requestMs / 2_000 + 2);
    assert.deepEqual(lab.refused(), [1]);
  },
);
