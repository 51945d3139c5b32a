// Replies of megabytes: few are made at a time, and none for a client that reads nothing.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createClient, GrpcChannel } from "./client.ts";
import { EchoService } from "./gen/echo_pb.ts";
import { MIB, message, open, TIMEOUT, until } from "./hostile-lab.ts";
import { BULKY_CALLS_AT_ONCE } from "./limits.ts";
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
    const session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } });
    session.on("error", () => undefined);
    await once(session, "remoteSettings");
    const lab = { server, port, session, othersGoOn: () => Promise.resolve() };
    const streams = Array.from({ length: 20 }, () => open(lab, "Unary"));
    for (const stream of streams) stream.end(message(1));
    await until(() => made >= BULKY_CALLS_AT_ONCE);
    await delay(100);
    assert.equal(made, BULKY_CALLS_AT_ONCE);
    // Who gives up makes room for the next; the end of all of them does not make the others one by one.
    streams[0]?.close(8);
    await until(() => made === BULKY_CALLS_AT_ONCE + 1);
    session.destroy();
    await until(() => server.callCount() === 0);
    await delay(50);
    assert.ok(made <= 2 * BULKY_CALLS_AT_ONCE, String(made));
    const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
    t.after(() => channel.close());
    const client = createClient(EchoService, channel);
    const replies = await Promise.all(Array.from({ length: 20 }, () => client.unary({})));
    assert.equal(replies.length, 20);
  },
);
