// Replies of megabytes: a few are made at a time, and none for a client that reads nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { FrameFlag, FrameType, grpcHeaders, RawHttp2 } from "#testing/raw-http2.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { BULKY_CALLS_AT_ONCE } from "#wire/framing/limits.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { MIB, message, PATH, TIMEOUT, until } from "./hostile-lab.ts";
import { ReplyScheduler, ReplyTurn } from "./reply-scheduler.ts";
import { GrpcServer } from "./server.ts";

test(
  "replies of megabytes are made a few at a time, and no more while their client reads none",
  TIMEOUT,
  async (t) => {
    let made = 0;
    const server = new GrpcServer();
    server.addService(EchoService, {
      unary: {
        bulky: async () => {
          made++;
          await delay(1);
          return { data: new Uint8Array(MIB) };
        },
      },
    });
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    t.after(() => server.close());
    const raw = await RawHttp2.connect(port);
    await raw.send(FrameType.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));
    for (let id = 1; id < 40; id += 2) {
      await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, grpcHeaders(`${PATH}Unary`));
      await raw.send(FrameType.DATA, FrameFlag.END_STREAM, id, message(1));
    }
    await until(() => made >= BULKY_CALLS_AT_ONCE);
    await delay(100);
    assert.equal(made, BULKY_CALLS_AT_ONCE);
    // A reply given up makes room for the next; the end of the connection makes room for none.
    await raw.send(FrameType.RST_STREAM, 0, 1, Buffer.from([0, 0, 0, 8]));
    await until(() => made === BULKY_CALLS_AT_ONCE + 1);
    raw.close();
    await until(() => server.callCount() === 0);
    await delay(50);
    assert.equal(made, BULKY_CALLS_AT_ONCE + 1);
    const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
    t.after(() => channel.close());
    const client = createClient(EchoService, channel);
    const replies = await Promise.all(Array.from({ length: 20 }, () => client.unary({})));
    assert.equal(replies.length, 20);
  },
);

test("a call that its client gave up has its turn until its handler has returned", TIMEOUT, async (t) => {
  let made = 0;
  const work = Promise.withResolvers<void>();
  const server = new GrpcServer();
  server.addService(EchoService, {
    unary: {
      bulky: async () => {
        made++;
        await work.promise;
        return {};
      },
    },
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  t.after(() => server.close());
  const raw = await RawHttp2.connect(port);
  for (let id = 1; id < 20; id += 2) {
    await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, grpcHeaders(`${PATH}Unary`));
    await raw.send(FrameType.DATA, FrameFlag.END_STREAM, id, message(1));
  }
  await until(() => made === BULKY_CALLS_AT_ONCE);
  for (let id = 1; id < 2 * BULKY_CALLS_AT_ONCE; id += 2)
    await raw.send(FrameType.RST_STREAM, 0, id, Buffer.from([0, 0, 0, 8]));
  await delay(100);
  assert.equal(made, BULKY_CALLS_AT_ONCE);
  work.resolve();
  await until(() => made === 10);
  raw.close();
  await until(() => server.callCount() === 0);
});

test("calls that wait and end at once run a few in each turn of the event loop", async () => {
  const scheduler = new ReplyScheduler();
  const large = Array.from({ length: BULKY_CALLS_AT_ONCE }, () => new ReplyTurn(scheduler));
  for (const turn of large) turn.take(() => undefined);
  const ran: number[] = [];
  for (let at = 0; at < 100; at++) {
    const turn = new ReplyTurn(scheduler);
    turn.take(() => {
      ran.push(at);
      turn.give();
    });
  }
  large[0]?.give();
  let most = 0;
  while (ran.length < 100) {
    const before = ran.length;
    await new Promise(setImmediate);
    most = Math.max(most, ran.length - before);
  }
  assert.equal(most, BULKY_CALLS_AT_ONCE);
});
