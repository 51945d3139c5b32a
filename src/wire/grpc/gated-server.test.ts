// A server with a gate: the share of unproven callers, and the reserves of others.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { ManualClock } from "#base/clock.ts";
import { FrameFlag, FrameType, grpcHeaders, type RawFrame, RawHttp2 } from "#testing/raw-http2.ts";
import { frame } from "#wire/framing/frames.ts";
import { EchoRequestSchema, EchoService } from "#wire/framing/gen/echo_pb.ts";
import { CONNECTIONS_OF_USER, REFUSALS_PER_CONNECTION, type ServerLimits } from "#wire/framing/limits.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { CallGate } from "./call-gate.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { echoHandlers } from "./echo-service.ts";
import { PATH, TIMEOUT, until } from "./hostile-lab.ts";
import { GrpcServer } from "./server.ts";

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
  readonly server: GrpcServer;
  readonly port: number;
  raw(address?: string): Promise<RawHttp2>;
  /** Calls as a user, and returns the answer's text. */
  asUser(user: string): Promise<string>;
}

const setUp = async (
  t: TestContext,
  limits: Partial<ServerLimits> = {},
  clock?: ManualClock,
): Promise<Lab> => {
  const server = new GrpcServer({ gate: GATE, limits, ...(clock === undefined ? {} : { clock }) });
  server.addService(EchoService, echoHandlers(), { otherRequests: { receiveFields: 50 } });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  return {
    server,
    port,
    async raw(address = "127.0.0.1") {
      const raw = await RawHttp2.connect(port, true, address);
      t.after(() => raw.close());
      return raw;
    },
    async asUser(user) {
      const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
      try {
        const { text } = await createClient(EchoService, channel).unary(
          { text: user },
          { timeoutMs: 10_000, metadata: { "x-user": user } },
        );
        return text;
      } finally {
        channel.close();
      }
    },
  };
};

const NOBODY = [["x-nobody", "1"]] as const;
const headersOf = (more: readonly (readonly [string, string])[] = []): Buffer =>
  grpcHeaders(`${PATH}Unary`, more);
const begin = (raw: RawHttp2, id: number, more: readonly (readonly [string, string])[]): Promise<void> =>
  raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headersOf(more));
const answerTo =
  (id: number) =>
  ({ type, streamId }: RawFrame): boolean =>
    type === FrameType.HEADERS && streamId === id;
const isGoaway = ({ type }: RawFrame): boolean => type === FrameType.GOAWAY;

test("who is not let in is refused by the headers: no byte of a body is waited for", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const raw = await lab.raw();
  await begin(raw, 1, []);
  const refused = await raw.frame(answerTo(1));
  assert.equal((refused?.flags ?? 0) & FrameFlag.END_STREAM, FrameFlag.END_STREAM);
  assert.equal(lab.server.callCount(), 0);
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${lab.port}`] });
  t.after(() => channel.close());
  const error = await createClient(EchoService, channel)
    .unary({})
    .catch((cause: unknown) => cause);
  assert.ok(error instanceof StatusError);
  assert.equal(error.code, Code.UNAUTHENTICATED);
  assert.equal(error.metadata.get("x-refused"), "1");
});

test(
  "after twenty refusals a connection is told to go, and is closed soon, whatever it does",
  TIMEOUT,
  async (t) => {
    const clock = new ManualClock();
    const lab = await setUp(t, {}, clock);
    const raw = await lab.raw();
    for (let i = 0; i < REFUSALS_PER_CONNECTION; i++) {
      assert.equal(raw.frames.some(isGoaway), false);
      await begin(raw, i * 2 + 1, []);
      await raw.frame(answerTo(i * 2 + 1));
    }
    await raw.frame(isGoaway);
    for (let i = 0; i < 10; i++) clock.advance(1_000);
    await raw.closed;
    assert.equal(await lab.asUser("alice"), "alice");
  },
);

test(
  "calls of nobody that are refused by what they bring count like those refused by their headers",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t);
    const raw = await lab.raw();
    // Unknown fields, more than the limit.
    const tooMany = frame(Buffer.alloc(200, Buffer.from([0x78, 0])), false);
    for (let i = 0; i < REFUSALS_PER_CONNECTION; i++) {
      assert.equal(raw.frames.some(isGoaway), false);
      await begin(raw, i * 2 + 1, NOBODY);
      await raw.send(FrameType.DATA, FrameFlag.END_STREAM, i * 2 + 1, tooMany);
      await raw.frame(answerTo(i * 2 + 1));
    }
    await raw.frame(isGoaway);
  },
);

test(
  "a connection that has proven something keeps its refusals, and is not closed for being idle",
  TIMEOUT,
  async (t) => {
    const clock = new ManualClock();
    const lab = await setUp(t, {}, clock);
    const [proven, idle] = [await lab.raw(), await lab.raw()];
    proven.answerPings();
    idle.answerPings();
    await proven.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, headersOf([["x-user", "alice"]]));
    await proven.send(FrameType.DATA, FrameFlag.END_STREAM, 1, frame(new Uint8Array(), false));
    await proven.frame(answerTo(1));
    for (let i = 1; i <= 2 * REFUSALS_PER_CONNECTION; i++) {
      await begin(proven, i * 2 + 1, []);
      await proven.frame(answerTo(i * 2 + 1));
    }
    for (let second = 0; second < 45; second++) {
      clock.advance(1_000);
      await delay(1);
    }
    await idle.closed;
    assert.equal(proven.frames.some(isGoaway), false);
    assert.equal(proven.isClosed, false);
  },
);

test(
  "calls whose requests do not come hold no places of users, and those of nobody give way to other networks",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, {
      maxCalls: 10,
      spareCalls: 2,
      unprovenCalls: 20,
      unprovenCallsPerNetwork: 15,
    });
    const user = await lab.raw();
    for (let i = 0; i < 60; i++) await begin(user, i * 2 + 1, [["x-user", "mallory"]]);
    await until(() => lab.server.callCount() === 60);
    assert.equal(await lab.asUser("alice"), "alice");
    const greedy = await lab.raw("127.0.0.2");
    for (let i = 0; i < 16; i++) await begin(greedy, i * 2 + 1, NOBODY);
    // The sixteenth of its network is refused.
    await greedy.frame(answerTo(31));
    const other = await lab.raw("127.0.0.3");
    for (let i = 0; i < 8; i++) await begin(other, i * 2 + 1, NOBODY);
    // The three oldest of the network with most calls give way.
    for (const id of [1, 3, 5]) assert.notEqual(await greedy.frame(answerTo(id)), undefined);
    await delay(20);
    assert.equal(
      other.frames.some(({ type }) => type === FrameType.HEADERS),
      false,
    );
    assert.equal(greedy.frames.filter(({ type }) => type === FrameType.HEADERS).length, 4);
  },
);

test("a request has a time to arrive in, a shorter one from nobody", TIMEOUT, async (t) => {
  const clock = new ManualClock();
  const lab = await setUp(t, { minimumBytesPerSecond: 0 }, clock);
  const raw = await lab.raw();
  await begin(raw, 1, NOBODY);
  await begin(raw, 3, [["x-user", "alice"]]);
  await until(() => lab.server.callCount() === 2);
  for (let second = 0; second < 12; second++) clock.advance(1_000);
  await raw.frame(answerTo(1));
  assert.equal(raw.frames.some(answerTo(3)), false);
  for (let second = 0; second < 120; second++) clock.advance(1_000);
  await raw.frame(answerTo(3));
});

test(
  "when connections run out, the oldest of the network with most of those that proved nothing goes",
  TIMEOUT,
  async (t) => {
    const lab = await setUp(t, { maxConnections: 6, unprovenConnections: 6 });
    const user = await lab.raw();
    await user.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, headersOf([["x-user", "alice"]]));
    await user.send(FrameType.DATA, FrameFlag.END_STREAM, 1, frame(new Uint8Array(), false));
    await user.frame(answerTo(1));
    const lonely = await lab.raw("127.0.0.2");
    const crowd: RawHttp2[] = [];
    for (let i = 0; i < 4; i++) crowd.push(await lab.raw("127.0.0.3"));
    await until(() => lab.server.connectionCount() === 6);
    assert.equal(await lab.asUser("bob"), "bob");
    await crowd[0]?.closed;
    assert.deepEqual(
      [user, lonely, ...crowd.slice(1)].map(({ isClosed }) => isClosed),
      Array(5).fill(false),
    );
  },
);

test("a user has a share of connections: those beyond are the first to go", TIMEOUT, async (t) => {
  const lab = await setUp(t, { maxConnections: CONNECTIONS_OF_USER + 2 });
  const own: RawHttp2[] = [];
  for (let i = 0; i < CONNECTIONS_OF_USER + 2; i++) {
    const raw = await lab.raw();
    await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, headersOf([["x-user", "alice"]]));
    await raw.send(FrameType.DATA, FrameFlag.END_STREAM, 1, frame(new Uint8Array(), false));
    await raw.frame(answerTo(1));
    own.push(raw);
  }
  assert.equal(await lab.asUser("bob"), "bob");
  await own[CONNECTIONS_OF_USER]?.closed;
  assert.equal(own.filter(({ isClosed }) => isClosed).length, 1);
});

test("a message of more fields than its method takes is refused before it is decoded", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${lab.port}`] });
  t.after(() => channel.close());
  const raw = await lab.raw();
  const unknown = (fields: number): Buffer => frame(Buffer.alloc(fields * 2, Buffer.from([0x78, 0])), false);
  for (const [id, fields] of [
    [1, 50],
    [3, 51],
  ] as const) {
    await begin(raw, id, NOBODY);
    await raw.send(FrameType.DATA, FrameFlag.END_STREAM, id, unknown(fields));
  }
  const taken = await raw.frame(answerTo(1));
  assert.equal((taken?.flags ?? 0) & FrameFlag.END_STREAM, 0);
  const refused = await raw.frame(answerTo(3));
  assert.equal((refused?.flags ?? 0) & FrameFlag.END_STREAM, FrameFlag.END_STREAM);
});

test("large requests of one user wait for that user's own share, and others' pass", TIMEOUT, async (t) => {
  const lab = await setUp(t, { heldRequestBytes: 1_600_000 });
  const greedy = await lab.raw();
  const body = frame(
    toBinary(EchoRequestSchema, create(EchoRequestSchema, { data: new Uint8Array(700_000) })),
    false,
  );
  const send = async (id: number, from: number, to: number): Promise<void> => {
    for (let at = from; at < to; at += 16_384) {
      const end = Math.min(at + 16_384, to);
      const flags = end === body.length ? FrameFlag.END_STREAM : 0;
      await greedy.send(FrameType.DATA, flags, id, body.subarray(at, end));
    }
  };
  for (const id of [1, 3, 5]) {
    await begin(greedy, id, [["x-user", "mallory"]]);
    await send(id, 0, 200_000);
  }
  await until(() => lab.server.callCount() === 3);
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${lab.port}`] });
  t.after(() => channel.close());
  const { data } = await createClient(EchoService, channel).unary(
    { data: new Uint8Array(190_000) },
    { timeoutMs: 10_000, metadata: { "x-user": "alice" } },
  );
  assert.equal(data.length, 190_000);
  // Each end lets a waiting call continue.
  for (const id of [1, 3, 5]) await send(id, 200_000, body.length);
  for (const id of [1, 3, 5]) {
    const answer = await greedy.frame(answerTo(id));
    assert.equal((answer?.flags ?? 0) & FrameFlag.END_STREAM, 0);
  }
});

test("who goes on sending what was refused is closed, without having proven anything", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const raw = await lab.raw();
  await begin(raw, 1, []);
  await raw.frame(answerTo(1));
  let sentBytes = 0;
  while (!raw.isClosed && sentBytes < 200_000_000) {
    await raw.send(FrameType.DATA, 0, 1, Buffer.alloc(16_000));
    sentBytes += 16_000;
    if (sentBytes % 1_600_000 === 0) await delay(5);
  }
  await raw.closed;
  assert.equal(await lab.asUser("alice"), "alice");
});
