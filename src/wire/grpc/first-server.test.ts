// Several addresses of one service: silent servers, dead ones, and those that answer but cannot help.
import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { echoHandlers } from "./echo-service.ts";
import { GrpcServer } from "./server.ts";

const TIMEOUT = { timeout: 60_000 };

interface Served {
  readonly server: GrpcServer;
  readonly address: string;
  /** Received unary calls. */
  calls: number;
  /** The status of its answers; undefined for the echo. */
  refuse: Code | undefined;
}

const serve = async (t: TestContext, port = 0): Promise<Served> => {
  const server = new GrpcServer();
  const served: Served = { server, address: "", calls: 0, refuse: undefined };
  const handlers = echoHandlers();
  server.addService(EchoService, {
    ...handlers,
    unary: (request, context) => {
      served.calls++;
      if (served.refuse !== undefined) throw new StatusError(served.refuse, "refused");
      return handlers.unary(request, context);
    },
  });
  const bound = await server.listen({ host: "127.0.0.1", port });
  t.after(() => server.close());
  return Object.assign(served, { address: `127.0.0.1:${bound.port}` });
};

/** A port that accepts connections and stays silent, like a stopped process. */
const silent = async (t: TestContext): Promise<string> => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return `127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
};

const open = (t: TestContext, addresses: readonly string[]) => {
  const channel = new GrpcChannel({ addresses });
  t.after(() => channel.close());
  return { channel, client: createClient(EchoService, channel) };
};

const isAway = ({ code }: StatusError): boolean =>
  code === Code.UNAVAILABLE || code === Code.DEADLINE_EXCEEDED;

test("a silent server does not keep calls from the next one", TIMEOUT, async (t) => {
  const second = await serve(t);
  const { client } = open(t, [await silent(t), second.address]);
  // Well below the time limit of a connection.
  assert.equal((await client.unary({ text: "a" }, { timeoutMs: 8_000 })).text, "a");
});

test(
  "a server that answers but cannot help gives way to the next, and later calls stay there",
  TIMEOUT,
  async (t) => {
    const [first, second] = [await serve(t), await serve(t)];
    const { channel, client } = open(t, [first.address, second.address]);
    const call = (): Promise<{ text: string }> =>
      channel.onAnyServer(() => client.unary({ text: "a" }), isAway);
    first.refuse = Code.UNAVAILABLE;
    await call();
    await call();
    assert.deepEqual([first.calls, second.calls], [1, 2]);
    // And back, when that one goes.
    first.refuse = undefined;
    await second.server.close();
    await call();
    assert.deepEqual([first.calls, second.calls], [2, 2]);
  },
);

test(
  "when nobody can help, each address has been asked once; other failures go nowhere else",
  TIMEOUT,
  async (t) => {
    const servers = [await serve(t), await serve(t), await serve(t)];
    const { channel, client } = open(
      t,
      servers.map(({ address }) => address),
    );
    for (const server of servers) server.refuse = Code.UNAVAILABLE;
    await assert.rejects(
      channel.onAnyServer(() => client.unary({}), isAway),
      { code: Code.UNAVAILABLE },
    );
    assert.deepEqual(
      servers.map(({ calls }) => calls),
      [1, 1, 1],
    );
    for (const server of servers) server.refuse = Code.NOT_FOUND;
    await assert.rejects(
      channel.onAnyServer(() => client.unary({}), isAway),
      { code: Code.NOT_FOUND },
    );
    assert.equal(
      servers.reduce((sum, { calls }) => sum + calls, 0),
      4,
    );
  },
);

test(
  "fifty calls at once leave a server that cannot help together, not one after another",
  TIMEOUT,
  async (t) => {
    const [first, second] = [await serve(t), await serve(t)];
    const { channel, client } = open(t, [first.address, second.address]);
    first.refuse = Code.UNAVAILABLE;
    const calls = Array.from({ length: 50 }, () =>
      channel.onAnyServer(() => client.unary({ text: "a" }), isAway),
    );
    await Promise.all(calls);
    assert.deepEqual([first.calls, second.calls], [50, 50]);
  },
);
