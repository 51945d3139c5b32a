// Connections that are admitted elsewhere: what a client sends meanwhile waits in its socket.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { FrameType, grpcHeaders, hpack, RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { createClient, GrpcChannel } from "./client.ts";
import type { Connection } from "./connection.ts";
import type { Door } from "./doorkeeper.ts";
import { echoHandlers } from "./echo-service.ts";
import { GrpcServer } from "./server.ts";

const TIMEOUT = { timeout: 60_000 };
/** More than a session allows in a row. */
const FRAMES = 50;
const VOLLEYS = 5;
/** Time for a server that reads too early to read each volley by itself. */
const VOLLEY_MS = 50;

interface Lab {
  readonly port: number;
  readonly coming: Connection[];
  /** Answers all questions so far. */
  answer(isTaken: boolean): void;
}

/** A server whose door answers when it is told to. */
async function setUp(t: TestContext): Promise<Lab> {
  const coming: Connection[] = [];
  const questions: ((isTaken: boolean) => void)[] = [];
  const door: Door<Connection> = {
    admit: (connection) =>
      new Promise((resolve) => {
        coming.push(connection);
        questions.push(resolve);
      }),
    greeted: () => true,
    proved: () => undefined,
    remove: () => undefined,
  };
  const server = new GrpcServer({ door });
  server.addService(EchoService, echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  return {
    port,
    coming,
    answer(isTaken) {
      for (const resolve of questions.splice(0)) resolve(isTaken);
    },
  };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(5);
}

test("an attack before the admission ends its own connection alone", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const raw = await RawHttp2.connect(lab.port);
  t.after(() => raw.close());
  await raw.send(FrameType.HEADERS, 0, 1, grpcHeaders("/grove.test.v1.EchoService/Collect"));
  for (let volley = 0; volley < VOLLEYS; volley++) {
    const frames = Array.from({ length: FRAMES }, (_, at) =>
      rawFrame(FrameType.CONTINUATION, 0, 1, hpack([[`x-${volley}-${at}`, "a".repeat(50)]])),
    );
    await raw.write(Buffer.concat(frames));
    await delay(VOLLEY_MS);
  }
  await until(() => lab.coming.length === 1);
  lab.answer(true);
  await raw.closed;
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${lab.port}`] });
  t.after(() => channel.close());
  const answer = createClient(EchoService, channel).unary({ text: "others go on" });
  await until(() => lab.coming.length === 2);
  lab.answer(true);
  assert.equal((await answer).text, "others go on");
});

test("a connection that is not admitted is closed, with what it sent", TIMEOUT, async (t) => {
  const lab = await setUp(t);
  const raw = await RawHttp2.connect(lab.port);
  t.after(() => raw.close());
  await until(() => lab.coming.length === 1);
  lab.answer(false);
  await raw.closed;
});
