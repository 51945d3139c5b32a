// Hostile connections: floods, resets, silence and crowds lead to a close, and other clients are served.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ManualClock, systemClock } from "#base/clock.ts";
import { hurriedClock } from "#testing/hurried-clock.ts";
import { FrameFlag, FrameType, grpcHeaders, hpack, RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { DEFAULT_SERVER_LIMITS } from "#wire/framing/limits.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { ignoreError } from "#wire/framing/stream-events.ts";
import { echoHandlers } from "./echo-service.ts";
import { MIB, message, open, PATH, send, setUp, TIMEOUT, until } from "./hostile-lab.ts";
import { GrpcServer } from "./server.ts";

test("a frame cut off by the end of the connection leaves nothing behind", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const raw = await RawHttp2.connect(lab.port);
  await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, grpcHeaders(`${PATH}Collect`));
  await until(() => lab.server.callCount() === 1);
  await raw.write(rawFrame(FrameType.DATA, 0, 1, Buffer.alloc(1_000)).subarray(0, 500));
  raw.close();
  await until(() => lab.server.callCount() === 0);
  await lab.othersGoOn();
});

test(
  "headers above 16 KiB never reach a handler, and a flood of them closes the connection",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t);
    const { grpcStatus } = await send(open(lab, "Unary", { "x-a": "a".repeat(15_000) }), message(1));
    assert.equal(grpcStatus, Code.OK);
    const raw = await RawHttp2.connect(lab.port);
    const large = grpcHeaders(`${PATH}Unary`, [["x-a", "a".repeat(16_200)]]);
    await raw.send(FrameType.HEADERS, 0, 1, large.subarray(0, 16_000));
    await raw.send(FrameType.CONTINUATION, FrameFlag.END_HEADERS, 1, large.subarray(16_000));
    await raw.frame(({ type }) => type === FrameType.RST_STREAM || type === FrameType.GOAWAY);
    raw.close();
    const flood = await RawHttp2.connect(lab.port);
    await flood.send(FrameType.HEADERS, 0, 1, grpcHeaders(`${PATH}Unary`));
    for (let i = 0; i < 100_000 && !flood.isClosed; i++) {
      await flood.send(FrameType.CONTINUATION, 0, 1, hpack([[`x-${i}`, "a".repeat(1_000)]]));
    }
    await flood.closed;
    assert.equal(lab.server.callCount(), 0);
    await lab.othersGoOn();
  },
);

test("rapid reset: a connection that opens and resets streams without end is closed", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const raw = await RawHttp2.connect(lab.port);
  const cancel = Buffer.from([0, 0, 0, 8]);
  const headers = grpcHeaders(`${PATH}Collect`);
  for (let id = 1; id < 200_000 && !raw.isClosed; id += 2) {
    const opened = rawFrame(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headers);
    await raw.write(Buffer.concat([opened, rawFrame(FrameType.RST_STREAM, 0, id, cancel)]));
    assert(lab.server.callCount() <= 2_000);
  }
  await raw.closed;
  await until(() => lab.server.callCount() === 0);
  await lab.othersGoOn();
});

test("10,000 streams on one connection: no more than 100 are ever in progress", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const raw = await RawHttp2.connect(lab.port);
  const headers = grpcHeaders(`${PATH}Collect`);
  const openStream = (i: number): Promise<void> =>
    raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, i * 2 + 1, headers);
  for (let i = 0; i < 100; i++) await openStream(i);
  await until(() => lab.server.callCount() === 100);
  for (let i = 100; i < 10_000 && !raw.isClosed; i++) {
    await openStream(i);
    assert(lab.server.callCount() <= 100);
  }
  raw.close();
  await until(() => lab.server.callCount() === 0);
  await lab.othersGoOn();
});

test("floods of settings, pings, empty frames and bad windows are ended or survived", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const floods: readonly (readonly [number, number, Buffer])[] = [
    [FrameType.SETTINGS, 0, Buffer.alloc(0)],
    [FrameType.PING, 0, Buffer.alloc(8)],
    [FrameType.DATA, 1, Buffer.alloc(0)],
    [FrameType.WINDOW_UPDATE, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff])],
    [FrameType.WINDOW_UPDATE, 1, Buffer.from([0, 0, 0, 0])],
  ];
  for (const [type, streamId, payload] of floods) {
    const raw = await RawHttp2.connect(lab.port);
    await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, grpcHeaders(`${PATH}Collect`));
    const many = Buffer.concat(Array.from({ length: 500 }, () => rawFrame(type, 0, streamId, payload)));
    for (let i = 0; i < 100 && !raw.isClosed; i++) await raw.write(many);
    await lab.othersGoOn();
    raw.close();
  }
  const nonsense = await RawHttp2.connect(lab.port, false);
  await nonsense.write(Buffer.from("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  await nonsense.closed;
  await until(() => lab.server.callCount() === 0);
  await lab.othersGoOn();
});

test("a connection that never finishes its greeting or a header is closed", TIMEOUT, async (t) => {
  const lab = await setUp(t, { handshakeMs: 500, keepaliveMs: 300, keepaliveTimeoutMs: 300 });
  const silent = await RawHttp2.connect(lab.port, false);
  await silent.closed;
  const half = await RawHttp2.connect(lab.port);
  await half.send(FrameType.HEADERS, 0, 1, grpcHeaders(`${PATH}Unary`).subarray(0, 20));
  for (let tries = 0; !half.isClosed; tries++) {
    assert.ok(tries < 300, "the connection stays open");
    await half.write(Buffer.alloc(1));
    await delay(100);
  }
});

test(
  "connections above the limit, and above the limit of an address, are closed at once",
  TIMEOUT,
  async (t) => {
    for (const limits of [{ maxConnections: 3 }, { maxConnectionsPerAddress: 3 }]) {
      const lab = await setUp(t, limits);
      const first = await RawHttp2.connect(lab.port);
      const second = await RawHttp2.connect(lab.port);
      await until(() => lab.server.connectionCount() === 3);
      const third = await RawHttp2.connect(lab.port);
      await third.closed;
      assert.equal(lab.server.connectionCount(), 3);
      first.close();
      await until(() => lab.server.connectionCount() === 2);
      const again = await RawHttp2.connect(lab.port);
      assert((await again.frame(({ type }) => type === FrameType.SETTINGS)) !== undefined);
      for (const raw of [second, again]) raw.close();
    }
  },
);

test("calls above the server's limit are RESOURCE_EXHAUSTED until others end", TIMEOUT, async (t) => {
  const lab = await setUp(t, { maxCalls: 5 });
  const held = Array.from({ length: 5 }, () => open(lab, "Collect"));
  await until(() => lab.server.callCount() === 5);
  assert.equal((await send(open(lab, "Unary"), message(1))).grpcStatus, Code.RESOURCE_EXHAUSTED);
  held[0]?.close(8);
  await until(() => lab.server.callCount() === 4);
  assert.equal((await send(open(lab, "Unary"), message(1))).grpcStatus, Code.OK);
  for (const stream of held) stream.close(8);
});

test(
  "headers that are too large, one after the other, end the connection and are reported once",
  TIMEOUT,
  async (t) => {
    const errors: unknown[] = [];
    const server = new GrpcServer({ onError: ({ error }) => errors.push(error) });
    server.addService(EchoService, { unary: () => ({}) });
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    t.after(() => server.close());
    const raw = await RawHttp2.connect(port);
    const bomb = grpcHeaders(
      `${PATH}Unary`,
      Array.from({ length: 100 }, (_, at) => [`x-${at}`, "a".repeat(600)]),
    );
    let sentBytes = 0;
    for (let id = 1; id < 20_001 && !raw.isClosed; id += 2) {
      for (let at = 0; at < bomb.length; at += 16_000) {
        const isLast = at + 16_000 >= bomb.length;
        const flags = isLast ? FrameFlag.END_HEADERS : 0;
        const type = at === 0 ? FrameType.HEADERS : FrameType.CONTINUATION;
        await raw.send(type, flags, id, bomb.subarray(at, at + 16_000));
      }
      sentBytes += bomb.length;
      await delay(1);
    }
    await raw.closed;
    assert.ok(sentBytes < 200 * MIB, `${sentBytes} bytes`);
    assert.equal(errors.filter((error) => /floods its connection/.test(String(error))).length, 1);
  },
);

test("uploads that wait for a slow disk, and then are refused, are no flood", TIMEOUT, async (t) => {
  const errors: unknown[] = [];
  const go = Promise.withResolvers<void>();
  const server = new GrpcServer({ clock: hurriedClock(10), onError: ({ error }) => errors.push(error) });
  server.addService(EchoService, {
    async collect() {
      await go.promise;
      throw new StatusError(Code.RESOURCE_EXHAUSTED, "no room");
    },
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: 1_000 });
  t.after(() => session.destroy());
  await once(session, "remoteSettings");
  const answers = Array.from({ length: 8 }, async () => {
    const stream = session.request({
      ":method": "POST",
      ":path": `${PATH}Collect`,
      "content-type": "application/grpc",
    });
    stream.on("error", () => undefined);
    // A message as large as the window, and more than that behind it.
    for (let i = 0; i < 4; i++) stream.write(message(MIB - 100));
    const [headers] = (await once(stream, "response")) as [Record<string, string>];
    stream.close();
    return headers["grpc-status"];
  });
  await delay(400);
  go.resolve();
  assert.deepEqual(await Promise.all(answers), Array(8).fill(String(Code.RESOURCE_EXHAUSTED)));
  await delay(400);
  assert.deepEqual(errors, []);
  assert.equal(session.closed, false);
});

test("uploads that wait for their turn of a busy event loop are no flood", TIMEOUT, async (t) => {
  const errors: unknown[] = [];
  const arrived = Promise.withResolvers<void>();
  const places = DEFAULT_SERVER_LIMITS.maxConcurrentStreams;
  const server = new GrpcServer({ onError: ({ error }) => errors.push(error) });
  let begun = 0;
  server.addService(EchoService, {
    async collect(requests) {
      // The first fill all places until the others have arrived behind them.
      if (++begun <= places) await arrived.promise;
      else for (const until = performance.now() + 2; performance.now() < until; );
      for await (const _ of requests);
      return {};
    },
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  const session = connect(`http://127.0.0.1:${port}`, { maxSessionMemory: 1_000 });
  t.after(() => session.destroy());
  await once(session, "remoteSettings");
  const answers = Array.from({ length: 2 * places }, async () => {
    const stream = session.request(
      { ":method": "POST", ":path": `${PATH}Collect`, "content-type": "application/grpc" },
      { endStream: false },
    );
    stream.end(message(20_000)).resume();
    stream.on("error", ignoreError);
    let status: unknown;
    stream.once("trailers", (trailers) => {
      status = trailers["grpc-status"];
    });
    await once(stream, "close");
    return status;
  });
  await until(() => begun === places);
  await delay(100);
  arrived.resolve();
  assert.deepEqual(await Promise.all(answers), Array(2 * places).fill(String(Code.OK)));
  assert.deepEqual(errors, []);
});

test(
  "calls that are on their way when draining begins are no flood: what is under way may finish",
  TIMEOUT,
  async (t) => {
    const errors: unknown[] = [];
    // Only the interval timers are hurried: the grace time of the end is a promise.
    const clock = { ...systemClock, every: hurriedClock(10).every };
    const server = new GrpcServer({ clock, onError: ({ error }) => errors.push(error) });
    server.addService(EchoService, echoHandlers());
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    t.after(() => server.close());
    const raw = await RawHttp2.connect(port);
    await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, grpcHeaders(`${PATH}Collect`));
    await until(() => server.callCount() === 1);
    const drained = server.drain(25_000);
    for (let id = 3; id < 20; id += 2) {
      await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, grpcHeaders(`${PATH}Collect`));
      for (let at = 0; at < 20; at++) await raw.send(FrameType.DATA, 0, id, message(16_000));
    }
    await delay(400);
    await raw.send(FrameType.DATA, FrameFlag.END_STREAM, 1, message(10));
    const status = await raw.frame(
      ({ type, flags, streamId }) =>
        type === FrameType.HEADERS && streamId === 1 && (flags & FrameFlag.END_STREAM) !== 0,
    );
    assert.ok(status !== undefined);
    await drained;
    assert.deepEqual(errors, []);
  },
);

test(
  "what comes late for calls that were refused and whose streams the server has ended is no flood",
  TIMEOUT,
  async (t) => {
    for (const isHeard of [false, true]) {
      const errors: unknown[] = [];
      const clock = new ManualClock();
      const server = new GrpcServer({ clock, onError: ({ error }) => errors.push(error) });
      server.addService(EchoService, {
        collect: () => {
          throw new StatusError(Code.RESOURCE_EXHAUSTED, "no room");
        },
      });
      const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
      t.after(() => server.close());
      const raw = await RawHttp2.connect(port);
      let pings = 0;
      const heard = async (): Promise<void> => {
        await raw.send(FrameType.PING, 0, 0, Buffer.alloc(8, ++pings));
        await raw.frame(({ type, payload }) => type === FrameType.PING && payload[0] === pings);
      };
      const ids = [1, 3, 5, 7, 9, 11];
      for (const id of ids) {
        await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, grpcHeaders(`${PATH}Collect`));
      }
      await heard();
      for (let second = 0; second < 20; second++) {
        clock.advance(1_000);
        if (isHeard && second < 6) await heard();
      }
      await until(() => server.callCount() === 0);
      for (const id of ids) {
        for (let at = 0; at < 60; at++) await raw.send(FrameType.DATA, 0, id, message(16_000));
      }
      await heard();
      clock.advance(1_000);
      assert.deepEqual(errors, []);
      raw.close();
    }
  },
);
