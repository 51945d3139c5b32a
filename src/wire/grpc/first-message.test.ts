// The bound on a stream's first message: both sides of it, and a reflection stream without a question.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { inTime } from "#wire/framing/first-message.ts";
import { ServerReflection } from "#wire/framing/gen/grpc/reflection/v1/reflection_pb.ts";
import { Code } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { addReflection, FIRST_QUESTION_MS } from "./reflection.ts";
import { GrpcServer } from "./server.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a message that comes in time is given, at the last moment too; a later one is DEADLINE_EXCEEDED", async () => {
  const clock = new ManualClock();
  const limit = { clock, timeoutMs: 10_000, what: "a header" };
  const message = Promise.withResolvers<string>();
  const given = inTime(message.promise, limit);
  clock.advance(10_000);
  message.resolve("in the socket already");
  assert.equal(await given, "in the socket already");
  const late = inTime(new Promise<string>(() => undefined), limit);
  clock.advance(10_000);
  await assert.rejects(late, { code: Code.DEADLINE_EXCEEDED, message: /^a header comes within 10 s/ });
  await assert.rejects(inTime(Promise.reject(new Error("gone")), limit), /gone/);
});

test("a stream of reflection that asks nothing ends, and one that has asked may go on", {
  timeout: 60_000,
}, async (t) => {
  const clock = new ManualClock();
  const server = new GrpcServer({});
  addReflection(server, [ServerReflection], clock);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
  t.after(async () => {
    channel.close();
    await server.close();
  });
  const client = createClient(ServerReflection, channel);
  const ask = { messageRequest: { case: "listServices", value: "" } } as const;
  const ended = Promise.withResolvers<void>();
  async function* questions(first: readonly (typeof ask)[]): AsyncGenerator<typeof ask> {
    yield* first;
    await ended.promise;
    yield ask;
  }
  const begin = (first: readonly (typeof ask)[]) => {
    const replies = client.serverReflectionInfo(questions(first));
    return replies[Symbol.asyncIterator]();
  };
  const asking = begin([ask]);
  assert.equal((await asking.next()).done, false);
  const refused = assert.rejects(begin([]).next(), { code: Code.DEADLINE_EXCEEDED });
  for (let tries = 0; server.callCount() < 2; tries++) {
    assert.ok(tries < 100_000, "the silent call does not come");
    await turn();
  }
  clock.advance(FIRST_QUESTION_MS);
  await refused;
  ended.resolve();
  assert.equal((await asking.next()).done, false);
});
