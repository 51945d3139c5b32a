// The channel: finding a server, losing it, and the outcome of calls meanwhile.
import assert from "node:assert/strict";
import { createServer, type ServerHttp2Stream } from "node:http2";
import { createServer as createNetServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ManualClock } from "#base/clock.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { ClientInterceptor } from "./channel-core.ts";
import { createClient, GrpcChannel, type GrpcChannelOptions } from "./client.ts";
import { ConnectFailure } from "./connect-failure.ts";
import { echoHandlers } from "./echo-service.ts";
import { GrpcServer } from "./server.ts";

const TIMEOUT = { timeout: 60_000 };

const serve = async (
  t: TestContext,
  port = 0,
): Promise<{ server: GrpcServer; address: string; port: number }> => {
  const server = new GrpcServer();
  server.addService(EchoService, echoHandlers());
  const bound = await server.listen({ host: "127.0.0.1", port });
  t.after(() => server.close());
  return { server, address: `127.0.0.1:${bound.port}`, port: bound.port };
};

const open = (t: TestContext, options: GrpcChannelOptions) => {
  const channel = new GrpcChannel(options);
  t.after(() => channel.close());
  return { channel, client: createClient(EchoService, channel) };
};

/** A port without a listener. */
const deadAddress = async (): Promise<string> => {
  const listener = createNetServer();
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const bound = listener.address();
  await new Promise<void>((resolve) => listener.close(() => resolve()));
  return `127.0.0.1:${typeof bound === "object" && bound !== null ? bound.port : 0}`;
};

const until = async (holds: () => boolean): Promise<void> => {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 6_000, "what is waited for does not come");
    await delay(5);
  }
};

test(
  "without a server a call fails with UNAVAILABLE at once, and so do others until the waiting time is over",
  TIMEOUT,
  async (t) => {
    const clock = new ManualClock();
    const address = await deadAddress();
    const { channel, client } = open(t, {
      addresses: [address],
      clock,
      backoff: { initialMs: 1_000, jitter: 0 },
    });
    assert.equal(channel.state, "idle");
    await assert.rejects(client.unary({}), { code: Code.UNAVAILABLE });
    assert.equal(channel.state, "transient-failure");
    const { port } = await serve(t, Number(address.split(":")[1]));
    assert(port > 0);
    await assert.rejects(client.unary({}), { code: Code.UNAVAILABLE });
    clock.advance(999);
    await assert.rejects(client.unary({}), { code: Code.UNAVAILABLE });
    clock.advance(1);
    assert.equal((await client.unary({ text: "a" })).text, "a");
    assert.equal(channel.state, "ready");
  },
);

test(
  "waiting times grow by their factor up to the largest, each spread by the jitter",
  TIMEOUT,
  async (t) => {
    const clock = new ManualClock();
    let random = 0.5;
    const { channel, client } = open(t, {
      addresses: [await deadAddress()],
      clock,
      random: () => random,
      backoff: { initialMs: 100, multiplier: 2, maxMs: 350, jitter: 0.2 },
    });
    const abort = new AbortController();
    const waiting = client.unary({}, { waitForReady: true, signal: abort.signal });
    waiting.catch(() => undefined);
    for (const [at, waitMs] of [
      [0.5, 100],
      [0, 160],
      [1, 420],
      [0.5, 350],
      [0.5, 350],
    ] as const) {
      random = at;
      await until(() => channel.state === "transient-failure");
      clock.advance(Math.round(waitMs) - 1);
      assert.equal(channel.state, "transient-failure");
      clock.advance(1.5);
      assert.equal(channel.state, "connecting");
    }
    abort.abort();
    await assert.rejects(waiting, { code: Code.CANCELLED });
  },
);

test("a call that waits for a server gets the one that comes up, or its deadline", TIMEOUT, async (t) => {
  const address = await deadAddress();
  const { client } = open(t, { addresses: [address], backoff: { initialMs: 20, maxMs: 20 } });
  const late = client.unary({ text: "late" }, { waitForReady: true });
  await assert.rejects(client.unary({}, { waitForReady: true, timeoutMs: 50 }), {
    code: Code.DEADLINE_EXCEEDED,
  });
  await serve(t, Number(address.split(":")[1]));
  assert.equal((await late).text, "late");
});

test(
  "of several addresses the first that answers is taken, and another when it is lost",
  TIMEOUT,
  async (t) => {
    const first = await serve(t);
    const second = await serve(t);
    const { client } = open(t, { addresses: [await deadAddress(), first.address, second.address] });
    await client.unary({});
    assert.deepEqual([first.server.connectionCount(), second.server.connectionCount()], [1, 0]);
    await first.server.close();
    assert.equal((await client.unary({ text: "b" }, { waitForReady: true })).text, "b");
    assert.equal(second.server.connectionCount(), 1);
  },
);

test("a draining server finishes its calls while new ones go elsewhere", TIMEOUT, async (t) => {
  const first = await serve(t);
  const second = await serve(t);
  const { client } = open(t, { addresses: [first.address, second.address] });
  const running = client.unary({ text: "running", delayMs: 300 });
  const releases = Promise.withResolvers<void>();
  const stream = client.converse(
    (async function* () {
      yield { text: "one" };
      await releases.promise;
      yield { text: "two" };
    })(),
  );
  const replies = stream[Symbol.asyncIterator]();
  assert.equal((await replies.next()).value?.text, "one");
  const drained = first.server.drain(10_000);
  assert.equal((await client.unary({ text: "new" }, { waitForReady: true })).text, "new");
  assert.equal(second.server.connectionCount(), 1);
  assert.equal((await running).text, "running");
  releases.resolve();
  assert.equal((await replies.next()).value?.text, "two");
  assert.equal((await replies.next()).done, true);
  await drained;
  assert.equal(first.server.connectionCount(), 0);
});

test("a drain that takes too long cuts off what is left, as UNAVAILABLE or CANCELLED", TIMEOUT, async (t) => {
  const { server, address } = await serve(t);
  const { client } = open(t, { addresses: [address] });
  const endless = client.unary({ delayMs: 60_000 });
  const failed = assert.rejects(endless, (error) => error instanceof StatusError && error.code !== Code.OK);
  await until(() => server.callCount() === 1);
  await server.drain(50);
  await failed;
  assert.equal(server.connectionCount(), 0);
});

test(
  "calls in a storm of draining servers all succeed: what a server did not look at is sent again",
  TIMEOUT,
  async (t) => {
    let current = await serve(t);
    const { client } = open(t, { addresses: [current.address], backoff: { initialMs: 5, maxMs: 5 } });
    const stop = new AbortController();
    let calls = 0;
    const lanes = Array.from({ length: 16 }, async () => {
      while (!stop.signal.aborted) {
        const text = String(calls++);
        assert.equal((await client.unary({ text }, { waitForReady: true })).text, text);
      }
    });
    for (let round = 0; round < 10; round++) {
      await delay(30);
      const { port } = current;
      await current.server.drain(5_000);
      current = await serve(t, port);
    }
    stop.abort();
    await Promise.all(lanes);
    assert(calls > 100);
  },
);

test(
  "a refused stream is sent again by itself, three times at most, and only while nothing is lost",
  TIMEOUT,
  async (t) => {
    let seen = 0;
    let refuse = 2;
    const http = createServer();
    http.on("stream", (stream: ServerHttp2Stream) => {
      stream.on("error", () => undefined);
      stream.resume();
      seen++;
      if (seen <= refuse) stream.close(7);
      else
        stream.respond(
          { ":status": 200, "content-type": "application/grpc", "grpc-status": "5" },
          { endStream: true },
        );
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    t.after(() => void http.close());
    const bound = http.address();
    const { client } = open(t, { addresses: [`127.0.0.1:${typeof bound === "object" ? bound?.port : 0}`] });
    await assert.rejects(client.unary({}), { code: Code.NOT_FOUND });
    assert.equal(seen, 3);
    [seen, refuse] = [0, 100];
    await assert.rejects(client.unary({}), ({ code, cause }: StatusError) => {
      // Its caller may make it again, as one that found no connection.
      return code === Code.UNAVAILABLE && cause instanceof ConnectFailure;
    });
    assert.equal(seen, 4);
    seen = 0;
    async function* requests() {
      yield {};
      await delay(50);
    }
    await assert.rejects(client.collect(requests()), { code: Code.UNAVAILABLE });
    assert.equal(seen, 1);
  },
);

test(
  "a server that is gone without a word is noticed by pings that it does not answer",
  TIMEOUT,
  async (t) => {
    const sockets = new Set<Socket>();
    const { port } = await serve(t);
    // A proxy that can go dead: it forwards until it is cut, and then drops everything.
    const { connect } = await import("node:net");
    let isCut = false;
    const wire = createNetServer((socket) => {
      const beyond = connect(port, "127.0.0.1");
      for (const one of [socket, beyond]) {
        sockets.add(one);
        one.on("error", () => undefined);
      }
      socket.on("data", (chunk: Buffer) => isCut || beyond.write(chunk));
      beyond.on("data", (chunk: Buffer) => isCut || socket.write(chunk));
    });
    await new Promise<void>((resolve) => wire.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      wire.close();
      for (const socket of sockets) socket.destroy();
    });
    const bound = wire.address();
    const { client } = open(t, {
      addresses: [`127.0.0.1:${typeof bound === "object" ? bound?.port : 0}`],
      keepalive: { intervalMs: 200, timeoutMs: 1_500 },
    });
    await client.unary({});
    await delay(600);
    assert.equal((await client.unary({ text: "alive" })).text, "alive");
    isCut = true;
    await assert.rejects(client.unary({}), { code: Code.UNAVAILABLE });
  },
);

test("a closed channel fails its calls and those that wait, and lets the process end", TIMEOUT, async (t) => {
  const { address } = await serve(t);
  const { channel, client } = open(t, { addresses: [address] });
  const running = client.unary({ delayMs: 5_000 });
  const failed = assert.rejects(running, (error) => error instanceof StatusError);
  await until(() => channel.state === "ready");
  channel.close();
  await failed;
  await assert.rejects(client.unary({}), { code: Code.CANCELLED });
  assert.equal(channel.state, "shutdown");
  const waiting = open(t, { addresses: [await deadAddress()] });
  const never = assert.rejects(waiting.client.unary({}, { waitForReady: true }), { code: Code.CANCELLED });
  waiting.channel.close();
  await never;
});

test("calls that wait for a connection are bounded", TIMEOUT, async (t) => {
  const { client } = open(t, { addresses: [await deadAddress()], limits: { maxWaitingCalls: 2 } });
  const outcomes = await Promise.allSettled(
    [1, 2, 3].map(() => client.unary({}, { waitForReady: true, timeoutMs: 100 })),
  );
  const codes = outcomes.map((one) =>
    one.status === "rejected" ? (one.reason as StatusError).code : undefined,
  );
  assert.deepEqual(codes, [Code.DEADLINE_EXCEEDED, Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE]);
});

test(
  "interceptors add metadata, see every outcome in order, and can refuse or translate it",
  TIMEOUT,
  async (t) => {
    const { address } = await serve(t);
    const seen: string[] = [];
    const watch =
      (name: string): ClientInterceptor =>
      async (call, next) => {
        seen.push(`${name} before ${call.method.name}`);
        call.metadata.append("x-by", name);
        try {
          await next();
          seen.push(`${name} after`);
        } catch (error) {
          seen.push(`${name} failed ${(error as StatusError).code}`);
          throw error;
        }
      };
    const translate: ClientInterceptor = async (_call, next) => {
      try {
        await next();
      } catch {
        throw new StatusError(Code.ABORTED, "translated");
      }
    };
    const { client } = open(t, { addresses: [address], interceptors: [watch("outer"), watch("inner")] });
    const reply = await client.unary({});
    assert.equal(reply.metadata["x-by"], "inner");
    for await (const one of client.expand({ count: 1 })) assert.equal(one.count, 0);
    await assert.rejects(client.unary({ failCode: 5 }), { code: Code.NOT_FOUND });
    await until(() => seen.length === 12);
    assert.deepEqual(seen.slice(0, 4), [
      "outer before Unary",
      "inner before Unary",
      "inner after",
      "outer after",
    ]);
    assert.deepEqual(seen.slice(-2), ["inner failed 5", "outer failed 5"]);
    const translated = open(t, { addresses: [address], interceptors: [translate] });
    await assert.rejects(translated.client.unary({ failCode: 5 }), { code: Code.ABORTED });
    const refused = open(t, {
      addresses: [address],
      interceptors: [() => Promise.reject(new StatusError(Code.UNAUTHENTICATED, "no token"))],
    });
    await assert.rejects(refused.client.unary({}), { code: Code.UNAUTHENTICATED });
    await assert.rejects(refused.client.expand({})[Symbol.asyncIterator]().next(), {
      code: Code.UNAUTHENTICATED,
    });
  },
);

test(
  "leaving a loop over replies cancels the call, and a slow reader holds the server back",
  TIMEOUT,
  async (t) => {
    let sent = 0;
    let wasCancelled = false;
    const server = new GrpcServer();
    server.addService(EchoService, {
      async *expand(_request, context) {
        context.signal.addEventListener("abort", () => {
          wasCancelled = true;
        });
        for (;;) {
          yield { data: new Uint8Array(100_000) };
          sent++;
        }
      },
    });
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    t.after(() => server.close());
    const { client } = open(t, { addresses: [`127.0.0.1:${port}`] });
    for await (const reply of client.expand({})) {
      assert.equal(reply.data.length, 100_000);
      await delay(300);
      break;
    }
    // A window, a queue and the kernel's buffers, but less than an unpaused server would have sent.
    const held = sent;
    assert(held < 200, String(held));
    await until(() => wasCancelled);
  },
);

test("a bad request or bad metadata fails the call and not the process", TIMEOUT, async (t) => {
  const { address } = await serve(t);
  const { client } = open(t, { addresses: [address], limits: { sendMessageBytes: 1_000 } });
  await assert.rejects(client.unary({ data: new Uint8Array(1_001) }), { code: Code.RESOURCE_EXHAUSTED });
  await assert.rejects(client.unary({}, { metadata: { "bad name": "x" } }), TypeError);
  async function* failing() {
    yield { text: "a" };
    throw new Error("no more");
  }
  await assert.rejects(client.collect(failing()), { code: Code.CANCELLED });
  assert.equal((await client.unary({ text: "fine" })).text, "fine");
});
