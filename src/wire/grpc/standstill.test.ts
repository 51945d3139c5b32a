// After a standstill of the process, uploads, connections and readers that it could not hear go on.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { FrameFlag, FrameType, grpcHeaders, RawHttp2 } from "#testing/raw-http2.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { DEFAULT_SERVER_LIMITS } from "#wire/framing/limits.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { echoHandlers } from "./echo-service.ts";
import { message, PATH, TIMEOUT, until } from "./hostile-lab.ts";
import { GrpcServer } from "./server.ts";

/** Longer than every limit of a server and of a channel. */
const STANDSTILL_MS = 10 * 60_000;
const { handshakeMs, keepaliveMs, keepaliveTimeoutMs, progressWindowMs, sendStallMs } = DEFAULT_SERVER_LIMITS;

interface Lab {
  readonly clock: ManualClock;
  readonly server: GrpcServer;
  readonly port: number;
}

async function setUp(t: TestContext, clock = new ManualClock()): Promise<Lab> {
  const server = new GrpcServer({ clock });
  server.addService(EchoService, echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  return { clock, server, port };
}

/** Judgements after a standstill run in an immediate; one more turn covers their effects. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Advances time while the server runs. */
async function passes(clock: ManualClock, ms: number): Promise<void> {
  for (let second = 0; second < ms / 1_000; second++) {
    clock.advance(1_000);
    await settled();
  }
}

/** A connection whose bytes the server has certainly read. */
async function heard(raw: RawHttp2, mark: number): Promise<void> {
  await raw.send(FrameType.PING, 0, 0, Buffer.alloc(8, mark));
  await raw.frame(({ type, payload }) => type === FrameType.PING && payload[0] === mark);
}

test(
  "an upload under way outlives standstills, and one that is silent while the server runs does not",
  TIMEOUT,
  async (t) => {
    const { clock, server, port } = await setUp(t);
    const raw = await RawHttp2.connect(port);
    const request = message(100_000);
    await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, grpcHeaders(`${PATH}Collect`));
    await raw.send(FrameType.DATA, 0, 1, request.subarray(0, 16_000));
    await heard(raw, 1);
    for (let round = 0; round < 3; round++) {
      clock.advance(1_000);
      clock.standStill(STANDSTILL_MS);
      await settled();
      assert.equal(server.callCount(), 1);
    }
    await passes(clock, 4 * progressWindowMs);
    assert.equal(server.callCount(), 0);
    raw.close();
  },
);

test("a call that begins right after a standstill is not charged for it", TIMEOUT, async (t) => {
  // Its timers have not fired yet when the call comes.
  let stoodMs = 0;
  const late = new (class extends ManualClock {
    override steadyMs(): number {
      return super.steadyMs() + stoodMs;
    }
  })();
  const { clock, server, port } = await setUp(t, late);
  const raw = await RawHttp2.connect(port);
  await heard(raw, 1);
  stoodMs = STANDSTILL_MS;
  await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, grpcHeaders(`${PATH}Unary`));
  await heard(raw, 2);
  await passes(clock, progressWindowMs - 3_000);
  assert.equal(server.callCount(), 1);
  await passes(clock, 4 * progressWindowMs);
  assert.equal(server.callCount(), 0);
  raw.close();
});

test(
  "a handshake, a ping without its answer and a reader that waits outlive standstills",
  TIMEOUT,
  async (t) => {
    const { clock, server, port } = await setUp(t);
    const silent = await RawHttp2.connect(port, false);
    const pinged = await RawHttp2.connect(port);
    const reader = await RawHttp2.connect(port);
    await reader.send(FrameType.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
    const head = grpcHeaders(`${PATH}Download`);
    await reader.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, head);
    // size = 2^31, chunk_bytes = 2,000,000
    const ask = Buffer.from([0, 0, 0, 0, 10, 0x08, 0x80, 0x80, 0x80, 0x80, 0x08, 0x10, 0x80, 0x89, 0x7a]);
    await reader.send(FrameType.DATA, FrameFlag.END_STREAM, 1, ask);
    await heard(reader, 1);
    await heard(pinged, 1);
    await until(() => server.connectionCount() === 3 && server.callCount() === 1);
    clock.advance(1_000);
    clock.standStill(STANDSTILL_MS);
    await settled();
    assert.equal(server.connectionCount(), 3);
    assert.equal(server.callCount(), 1);
    // A client that is silent while the server runs is still closed.
    clock.advance(handshakeMs);
    await silent.closed;
    clock.advance(keepaliveMs - handshakeMs);
    const isPing = ({ type, flags }: { type: number; flags: number }): boolean =>
      type === FrameType.PING && (flags & FrameFlag.ACK) === 0;
    await pinged.frame(isPing);
    clock.standStill(STANDSTILL_MS);
    await settled();
    assert.equal(server.connectionCount(), 2);
    clock.advance(keepaliveTimeoutMs);
    await pinged.closed;
    clock.advance(sendStallMs);
    await until(() => server.callCount() === 0);
    reader.close();
  },
);

test("a client's ping that waits for its answer outlives a standstill of the client", TIMEOUT, async (t) => {
  const { port } = await setUp(t);
  const clock = new ManualClock();
  const channel = new GrpcChannel({
    addresses: [`127.0.0.1:${port}`],
    keepalive: { intervalMs: 10_000, timeoutMs: 5_000 },
    clock,
  });
  t.after(() => channel.close());
  const client = createClient(EchoService, channel);
  await client.unary({ text: "a" });
  const waiting = client.unary({ text: "b", delayMs: 300 });
  clock.advance(12_500);
  // The ping is on its way; its answer cannot have been read yet.
  clock.standStill(STANDSTILL_MS);
  assert.equal((await waiting).text, "b");
});
