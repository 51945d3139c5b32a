// A server over several loops: its calls, its limits over all of them, its end, and the end of a thread.
import assert from "node:assert/strict";
import { createServer as createNetServer } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { RawHttp2 } from "#testing/raw-http2.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { CONNECTIONS_OF_USER, type ServerLimits } from "#wire/framing/limits.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { CallGate } from "#wire/grpc/call-gate.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { echoHandlers } from "#wire/grpc/echo-service.ts";
import type { ServerInterceptor } from "#wire/grpc/handler.ts";
import type { ServerErrorEvent } from "#wire/grpc/server.ts";
import { LoopServer } from "./loop-server.ts";

const LOOPS = 3;
const TIMEOUT = { timeout: 60_000 };

/** A call with x-user is that user's, one with x-nobody is unproven, and others are refused. */
const GATE: CallGate = {
  judge: ({ metadata, peer }) => {
    const party = metadata.get("x-user");
    if (party !== undefined) return { kind: "user", party };
    if (metadata.get("x-nobody") !== undefined) return { kind: "unproven", party: peer.address };
    throw new StatusError(Code.UNAUTHENTICATED, "who is it?");
  },
  refused: () => ["x-refused", "1"],
  isNode: () => false,
};

interface Lab {
  readonly server: LoopServer;
  readonly port: number;
  readonly workers: Worker[];
  readonly ended: unknown[];
  readonly errors: ServerErrorEvent[];
  client(): Client<typeof EchoService>;
}

async function setUp(
  t: TestContext,
  limits: Partial<ServerLimits> = {},
  interceptors: readonly ServerInterceptor[] = [],
): Promise<Lab> {
  const workers: Worker[] = [];
  const ended: unknown[] = [];
  const errors: ServerErrorEvent[] = [];
  const server = new LoopServer({
    loops: LOOPS,
    limits,
    gate: GATE,
    interceptors,
    spawn(start) {
      const worker = new Worker(new URL("./echo-loop.fixture.ts", import.meta.url), { workerData: start });
      workers.push(worker);
      return worker;
    },
    onError: (event) => errors.push(event),
    onThreadEnd: (error) => ended.push(error),
  });
  server.addService(EchoService, echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  return {
    server,
    port,
    workers,
    ended,
    errors,
    client() {
      const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
      t.after(() => channel.close());
      return createClient(EchoService, channel);
    },
  };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(5);
}

const ADA = { metadata: { "x-user": "ada" } };

test(
  "calls of many connections are answered over all loops, by handlers in this thread",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t);
    const clients = Array.from({ length: 24 }, () => lab.client());
    const texts = await Promise.all(
      clients.flatMap((client, at) =>
        Array.from(
          { length: 10 },
          async (_, call) => (await client.unary({ text: `${at} ${call}` }, ADA)).text,
        ),
      ),
    );
    assert.deepEqual(
      texts,
      clients.flatMap((_, at) => Array.from({ length: 10 }, (__, call) => `${at} ${call}`)),
    );
    assert.equal(lab.server.connectionCount(), 24);
    await until(() => lab.server.callCount() === 0);
  },
);

test("status, details, headers and trailers of a refusal cross threads as they are", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const metadata = { ...ADA.metadata, "x-word": "ja", "x-bytes-bin": Buffer.from([0, 255]) };
  const request = { failCode: Code.DATA_LOSS, text: "lost: ä", data: Buffer.from("why") };
  await assert.rejects(lab.client().unary(request, { metadata }), (error: StatusError) => {
    assert.equal(error.code, Code.DATA_LOSS);
    assert.equal(error.message, "lost: ä");
    assert.equal(Buffer.from(error.details[0]?.value ?? []).toString(), "why");
    assert.equal(error.metadata.get("x-word"), "ja");
    assert.deepEqual([...(error.metadata.getBinary("x-bytes-bin") ?? [])], [0, 255]);
    return true;
  });
  await assert.rejects(lab.client().unary({}, {}), (error: StatusError) => {
    assert.equal(error.code, Code.UNAUTHENTICATED);
    assert.equal(error.metadata.get("x-refused"), "1");
    return true;
  });
});

test("a client that gives up, and a deadline, abort the handler", TIMEOUT, async (t) => {
  const reasons: number[] = [];
  const watch: ServerInterceptor = (context, next) => {
    context.signal.addEventListener("abort", () => reasons.push((context.signal.reason as StatusError).code));
    return next();
  };
  const lab = await setUp(t, {}, [watch]);
  const abort = new AbortController();
  const given = lab.client().unary({ delayMs: 60_000 }, { ...ADA, signal: abort.signal });
  given.catch(() => undefined);
  await until(() => lab.server.callCount() === 1);
  abort.abort();
  await until(() => lab.server.callCount() === 0);
  // The deadline of the call passes at both ends, and either tells the handler.
  await assert.rejects(lab.client().unary({ delayMs: 60_000 }, { ...ADA, timeoutMs: 2_000 }), {
    code: Code.DEADLINE_EXCEEDED,
  });
  await until(() => lab.server.callCount() === 0);
  assert.equal(reasons.length, 2);
  assert.equal(reasons[0], Code.CANCELLED);
});

test(
  "connections of one address are counted over all loops, and those of users apart",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, { maxConnectionsPerAddress: 12 });
    const raws = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const raw = await RawHttp2.connect(lab.port, true, "127.0.0.1");
        t.after(() => raw.close());
        return raw;
      }),
    );
    await until(() => raws.filter((raw) => raw.isClosed).length === 8);
    assert.equal(lab.server.connectionCount(), 12);
    const told = () => lab.errors.flatMap(({ kind, error }) => (kind === "overload" ? [String(error)] : []));
    await until(() => told().length > 0);
    assert.deepEqual(told(), ["Error: 8 connections were turned away, or closed to make room for others"]);
    for (const raw of raws) raw.close();
    await until(() => lab.server.connectionCount() === 0);
    // A proven connection no longer counts for its address.
    for (let count = 0; count < CONNECTIONS_OF_USER; count++) await lab.client().unary({}, ADA);
    assert.equal(lab.server.connectionCount(), CONNECTIONS_OF_USER);
  },
);

test("calls of a user are counted over all loops", TIMEOUT, async (t) => {
  const lab = await setUp(t, { callsPerParty: 10, maxCalls: 1_000, spareCalls: 0 });
  const refused: Code[] = [];
  // Those that have places keep them until the server is closed.
  for (let count = 0; count < 30; count++) {
    lab
      .client()
      .unary({ delayMs: 60_000 }, ADA)
      .catch((error: unknown) => refused.push((error as StatusError).code));
  }
  await until(() => refused.length === 20 && lab.server.callCount() === 10);
  assert.ok(refused.every((code) => code === Code.RESOURCE_EXHAUSTED));
});

test(
  "a thread that ends takes its connections and calls with it, and another one follows",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t);
    const clients = Array.from({ length: 12 }, () => lab.client());
    const calls = clients.map((client) => client.unary({ delayMs: 60_000 }, ADA));
    const outcomes = Promise.allSettled(calls);
    await until(() => lab.server.callCount() === 12);
    const before = lab.workers.length;
    await Promise.all(lab.workers.map((worker) => worker.terminate()));
    for (const outcome of await outcomes) assert.equal(outcome.status, "rejected");
    await until(() => lab.workers.length === before + LOOPS);
    assert.equal(lab.ended.length, LOOPS);
    assert.equal(lab.server.callCount(), 0);
    const answer = async (): Promise<string> => (await lab.client().unary({ text: "again" }, ADA)).text;
    let text: string | undefined;
    while (text === undefined) text = await answer().catch(() => undefined);
    assert.equal(text, "again");
  },
);

test("a port that another process listens on is refused, although loops share theirs", TIMEOUT, async (t) => {
  const other = createNetServer();
  await new Promise<void>((resolve) =>
    other.listen({ port: 0, host: "127.0.0.1", reusePort: true }, resolve),
  );
  t.after(() => other.close());
  const { port } = other.address() as { port: number };
  const server = new LoopServer({
    loops: 2,
    gate: GATE,
    interceptors: [],
    spawn: () => assert.fail("no thread starts"),
  });
  await assert.rejects(server.listen({ host: "127.0.0.1", port }), { code: "EADDRINUSE" });
});

test("certificates that no server can use are refused before any loop gets them", () => {
  const unusable = { cert: "no certificate", key: "no key" };
  const server = new LoopServer({
    loops: 2,
    tls: unusable,
    gate: GATE,
    interceptors: [],
    spawn: () => assert.fail("no thread starts"),
  });
  assert.throws(() => server.updateTls(unusable), /PEM|no start line/i);
});

test("draining lets calls in progress finish and takes no others", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const running = lab.client().unary({ text: "slow", delayMs: 500 }, ADA);
  await until(() => lab.server.callCount() === 1);
  const drained = lab.server.drain(20_000);
  assert.equal((await running).text, "slow");
  await drained;
  assert.equal(lab.server.connectionCount(), 0);
  await assert.rejects(lab.client().unary({}, { ...ADA, timeoutMs: 200 }));
});
