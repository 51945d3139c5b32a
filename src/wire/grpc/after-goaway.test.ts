// Connections that take no more calls, and whose other end is gone without a word while calls go on.
import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { FrameFlag, FrameType, grpcHeaders, type RawFrame, RawHttp2 } from "#testing/raw-http2.ts";
import { until } from "#testing/until.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { DEFAULT_SERVER_LIMITS } from "#wire/framing/limits.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { echoHandlers } from "./echo-service.ts";
import { PATH, TIMEOUT } from "./hostile-lab.ts";
import { GrpcServer } from "./server.ts";

const INTERVAL_MS = 10_000;
const KEEPALIVE = { intervalMs: INTERVAL_MS, timeoutMs: INTERVAL_MS };

async function serve(t: TestContext, clock?: ManualClock): Promise<{ server: GrpcServer; port: number }> {
  const server = new GrpcServer(clock === undefined ? {} : { clock });
  server.addService(EchoService, echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  return { server, port };
}

/** A way to a port, which forwards until it is cut and then drops everything. */
async function cuttableWay(t: TestContext, port: number): Promise<{ address: string; cut(): void }> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const way = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    near.on("data", (bytes: Buffer) => isCut || far.write(bytes));
    far.on("data", (bytes: Buffer) => isCut || near.write(bytes));
  });
  await new Promise<void>((resolve) => way.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    way.close();
    for (const socket of sockets) socket.destroy();
  });
  const bound = way.address();
  const address = `127.0.0.1:${typeof bound === "object" ? bound?.port : 0}`;
  return {
    address,
    cut: () => {
      isCut = true;
    },
  };
}

test("a call on a connection that its server drains ends when that server is gone", TIMEOUT, async (t) => {
  const { server, port } = await serve(t);
  const { address, cut } = await cuttableWay(t, port);
  const clock = new ManualClock();
  const channel = new GrpcChannel({ addresses: [address], keepalive: KEEPALIVE, clock });
  t.after(() => channel.close());
  let outcome: unknown;
  const call = createClient(EchoService, channel).unary({ delayMs: 3_600_000 });
  call.catch((error: unknown) => {
    outcome = error;
  });
  await until(() => server.callCount() === 1);
  const draining = server.drain(3_600_000);
  await until(() => channel.state === "idle");
  cut();
  await until(() => {
    clock.advance(INTERVAL_MS / 2);
    return outcome !== undefined;
  });
  assert.ok(outcome instanceof StatusError && outcome.code === Code.UNAVAILABLE);
  await Promise.all([server.close(), draining]);
});

test("a client that says goodbye is asked whether it lives while it has a call", TIMEOUT, async (t) => {
  const clock = new ManualClock();
  const { server, port } = await serve(t, clock);
  const raw = await RawHttp2.connect(port);
  await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, grpcHeaders(`${PATH}Collect`));
  await raw.send(FrameType.GOAWAY, 0, 0, Buffer.alloc(8));
  await raw.frame(({ type }) => type === FrameType.GOAWAY);
  const isAsked = ({ type, flags }: RawFrame): boolean =>
    type === FrameType.SETTINGS && (flags & FrameFlag.ACK) === 0;
  const pass = (ms: number): void => {
    for (let second = 0; second < ms / 1_000; second++) clock.advance(1_000);
  };
  const { keepaliveMs, keepaliveTimeoutMs } = DEFAULT_SERVER_LIMITS;
  for (let round = 0; round < 3; round++) {
    raw.frames.length = 0;
    pass(keepaliveMs + 2_000);
    assert.ok(await raw.frame(isAsked));
    await raw.send(FrameType.SETTINGS, FrameFlag.ACK, 0, Buffer.alloc(0));
    await raw.send(FrameType.PING, 0, 0, Buffer.alloc(8));
    await raw.frame(({ type }) => type === FrameType.PING);
    assert.equal(server.callCount(), 1);
  }
  pass(keepaliveMs + 2_000);
  pass(keepaliveTimeoutMs + 2_000);
  await raw.closed;
  await until(() => server.callCount() === 0);
});
