// Receive windows: narrow at once, wide again after a calm, and no flood of SETTINGS in between.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { FrameFlag, FrameType, grpcHeaders, type RawFrame, RawHttp2 } from "#testing/raw-http2.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { SETTINGS_ANSWER_MS, WINDOWS_CALM_MS } from "#wire/framing/limits.ts";
import { echoHandlers } from "./echo-service.ts";
import { MIB, PATH, TIMEOUT, until } from "./hostile-lab.ts";
import { ReceiveWindows } from "./receive-windows.ts";
import { GrpcServer } from "./server.ts";

const LIMITS = { streamWindowBytes: MIB, streamWindowsTotalBytes: 4 * MIB };
const CALM_SECONDS = WINDOWS_CALM_MS / 1_000;

test("a window shrinks at once, and grows to what fitted all through a calm", () => {
  const windows = new ReceiveWindows(LIMITS);
  windows.fit(4, 0);
  assert.equal(windows.bytes, MIB);
  windows.fit(16, 1_000);
  assert.equal(windows.bytes, MIB / 4);
  windows.fit(1, 2_000);
  windows.fit(8, 3_000);
  windows.fit(1, 1_999 + WINDOWS_CALM_MS);
  assert.equal(windows.bytes, MIB / 4);
  windows.fit(1, 2_000 + WINDOWS_CALM_MS);
  assert.equal(windows.bytes, MIB / 2);
});

test("a calm that many streams interrupt begins anew", () => {
  const windows = new ReceiveWindows(LIMITS);
  windows.fit(16, 0);
  windows.fit(1, 1_000);
  windows.fit(16, WINDOWS_CALM_MS);
  windows.fit(1, WINDOWS_CALM_MS + 1_000);
  assert.equal(windows.bytes, MIB / 4);
  windows.fit(1, 2 * WINDOWS_CALM_MS + 1_000);
  assert.equal(windows.bytes, MIB);
});

/** A client that answers no SETTINGS by itself, and how many calls it has. */
async function setUp(t: TestContext): Promise<{
  raw: RawHttp2;
  /** SETTINGS that the client has got besides those of the start. */
  told(): number[];
  answer(): Promise<void>;
  /** Opens or ends calls until there are so many, and lets a second pass. */
  second(calls: number): Promise<void>;
}> {
  const clock = new ManualClock();
  const server = new GrpcServer({ limits: LIMITS, clock });
  server.addService(EchoService, echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const raw = await RawHttp2.connect(port);
  raw.answerPings();
  t.after(async () => {
    raw.close();
    await server.close();
  });
  const isTold = ({ type, flags }: RawFrame): boolean =>
    type === FrameType.SETTINGS && (flags & FrameFlag.ACK) === 0;
  await raw.frame(isTold);
  let opened: number[] = [];
  let last = -1;
  let pings = 0;
  return {
    raw,
    told: () =>
      raw.frames
        .filter(isTold)
        .slice(1)
        // One setting: its number and its value.
        .map(({ payload }) => payload.readUInt32BE(2)),
    answer: () => raw.send(FrameType.SETTINGS, FrameFlag.ACK, 0, Buffer.alloc(0)),
    second: async (calls) => {
      for (const id of opened.slice(calls))
        await raw.send(FrameType.RST_STREAM, 0, id, Buffer.from([0, 0, 0, 8]));
      opened = opened.slice(0, calls);
      while (opened.length < calls) {
        opened.push((last += 2));
        await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, last, grpcHeaders(`${PATH}Collect`));
      }
      await until(() => server.callCount() === calls || raw.isClosed);
      const mark = ++pings;
      await raw.send(FrameType.PING, 0, 0, Buffer.alloc(8, mark));
      await raw.frame(({ type, payload }) => type === FrameType.PING && payload[0] === mark);
      clock.advance(1_000);
    },
  };
}

test("streams that come and go each second do not fill a client with SETTINGS", TIMEOUT, async (t) => {
  const { raw, told, answer, second } = await setUp(t);
  for (let swing = 0; swing < 15; swing++) {
    await second(16);
    await second(1);
  }
  assert.equal(raw.isClosed, false);
  assert.deepEqual(told(), [MIB / 4]);
  await answer();
  for (let calm = 0; calm < CALM_SECONDS + 2; calm++) await second(1);
  await until(() => told().length === 2);
  assert.deepEqual(told(), [MIB / 4, MIB]);
});

test("a client that keeps its wide windows is told no more, and closed in the end", TIMEOUT, async (t) => {
  const { raw, told, second } = await setUp(t);
  await second(16);
  for (let at = 0; at < CALM_SECONDS + 2; at++) await second(1);
  assert.deepEqual(told(), [MIB / 4]);
  for (let at = CALM_SECONDS; at < SETTINGS_ANSWER_MS / 1_000 - 5; at++) await second(1);
  assert.equal(raw.isClosed, false);
  for (let at = 0; at < 10; at++) await second(1);
  await raw.closed;
});
