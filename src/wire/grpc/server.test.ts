// The server: the view of handlers and interceptors, the end of calls, and built-in services.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { frame } from "#wire/framing/frames.ts";
import { EchoRequestSchema, EchoService } from "#wire/framing/gen/echo_pb.ts";
import { Health, HealthCheckResponse_ServingStatus } from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import {
  ServerReflection,
  type ServerReflectionRequestSchema,
} from "#wire/framing/gen/grpc/reflection/v1/reflection_pb.ts";
import { Code, codeName, StatusError } from "#wire/framing/status.ts";
import type { CallContext } from "./call-context.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { normalAddress } from "./connection.ts";
import { echoHandlers } from "./echo-service.ts";
import type { ServerInterceptor, ServiceHandlers } from "./handler.ts";
import { HealthService } from "./health.ts";
import { addReflection } from "./reflection.ts";
import { GrpcServer, type GrpcServerOptions, type ServerErrorEvent } from "./server.ts";

const TIMEOUT = { timeout: 60_000 };

interface Choices extends GrpcServerOptions {
  readonly handlers?: Partial<ServiceHandlers<typeof EchoService>>;
}

const setUp = async (t: TestContext, choices: Choices) => {
  const server = new GrpcServer(choices);
  server.addService(EchoService, choices.handlers ?? echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
  t.after(async () => {
    channel.close();
    await server.close();
  });
  return { server, channel, client: createClient(EchoService, channel), port };
};

const all = async <T>(source: AsyncIterable<T>): Promise<T[]> => {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
};

async function* none(): AsyncGenerator<never, void, undefined> {}

const until = async (holds: () => boolean): Promise<void> => {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 6_000, "what is waited for does not come");
    await delay(5);
  }
};

test("what a handler throws by mistake is UNKNOWN without its text, and is reported", TIMEOUT, async (t) => {
  const events: ServerErrorEvent[] = [];
  class Known extends Error {}
  const { client } = await setUp(t, {
    onError: (event) => events.push(event),
    mapError: (error) => (error instanceof Known ? new StatusError(Code.NOT_FOUND, "mapped") : undefined),
    handlers: {
      unary: ({ text }) => {
        if (text === "known") throw new Known();
        throw new Error("the secret sst_123");
      },
      async *expand() {
        yield {};
        throw new Error("the secret sst_123");
      },
    },
  });
  await assert.rejects(client.unary({}), { code: Code.UNKNOWN, message: "internal error" });
  await assert.rejects(client.unary({ text: "known" }), { code: Code.NOT_FOUND, message: "mapped" });
  await assert.rejects(all(client.expand({})), { code: Code.UNKNOWN, message: "internal error" });
  assert.deepEqual(
    events.map(({ kind, method, error }) => [kind, method?.name, (error as Error).message]),
    [
      ["handler", "Unary", "the secret sst_123"],
      ["handler", "Expand", "the secret sst_123"],
    ],
  );
});

test("a method without a handler is UNIMPLEMENTED, and a service is added once", TIMEOUT, async (t) => {
  const { server, client } = await setUp(t, { handlers: { unary: () => ({}) } });
  await assert.rejects(all(client.expand({})), { code: Code.UNIMPLEMENTED });
  await assert.rejects(client.collect(none()), { code: Code.UNIMPLEMENTED });
  await assert.rejects(all(client.converse(none())), { code: Code.UNIMPLEMENTED });
  assert.throws(() => server.addService(EchoService, {}), TypeError);
});

test(
  "interceptors run around handlers in order, hand things on, refuse, and see every outcome",
  TIMEOUT,
  async (t) => {
    const seen: string[] = [];
    const key = Symbol("key");
    const watch =
      (name: string): ServerInterceptor =>
      async (context, next) => {
        context.values.set(key, `${String(context.values.get(key) ?? "")}${name}`);
        try {
          await next();
          seen.push(`${name} ok`);
        } catch (error) {
          seen.push(`${name} ${codeName((error as StatusError).code)}`);
          throw error;
        }
      };
    const refuse: ServerInterceptor = (context, next) => {
      if (context.metadata.get("x-refuse") !== undefined)
        throw new StatusError(Code.PERMISSION_DENIED, "refused");
      return next();
    };
    const { client, port } = await setUp(t, {
      interceptors: [watch("a"), refuse, watch("b")],
      handlers: {
        unary: (request, context) => {
          if (request.failCode > 0) throw new Error("mistake");
          return { text: String(context.values.get(key)) };
        },
        async *expand(request, { signal }) {
          yield {};
          if (request.delayMs > 0) await once(signal, "abort");
          signal.throwIfAborted();
        },
      },
      onError: () => undefined,
    });
    assert.equal((await client.unary({})).text, "ab");
    await assert.rejects(client.unary({ failCode: 1 }), { code: Code.UNKNOWN });
    await assert.rejects(client.unary({}, { metadata: { "x-refuse": "1" } }), {
      code: Code.PERMISSION_DENIED,
    });
    await all(client.expand({}));
    // A raw session: our own client would end the call at the same moment as the server, and either may win.
    const session = connect(`http://127.0.0.1:${port}`);
    t.after(async () => session.destroy());
    const stream = session.request({
      ":method": "POST",
      ":path": "/grove.test.v1.EchoService/Expand",
      "content-type": "application/grpc",
      "grpc-timeout": "50m",
    });
    stream.resume().end(frame(toBinary(EchoRequestSchema, create(EchoRequestSchema, { delayMs: 1 })), false));
    const [trailers] = (await once(stream, "trailers")) as [Record<string, unknown>];
    assert.equal(Number(trailers["grpc-status"]), Code.DEADLINE_EXCEEDED);
    const gone = new AbortController();
    const cut = client.expand({ delayMs: 1 }, { signal: gone.signal })[Symbol.asyncIterator]();
    await cut.next();
    gone.abort();
    await assert.rejects(cut.next(), { code: Code.CANCELLED });
    await until(() => seen.length === 11);
    assert.deepEqual(seen, [
      "b ok",
      "a ok",
      "b UNKNOWN",
      "a UNKNOWN",
      "a PERMISSION_DENIED",
      "b ok",
      "a ok",
      "b DEADLINE_EXCEEDED",
      "a DEADLINE_EXCEEDED",
      "b CANCELLED",
      "a CANCELLED",
    ]);
  },
);

test("the context says which method was called, by whom, and for how long", TIMEOUT, async (t) => {
  const contexts: CallContext[] = [];
  const { client, port } = await setUp(t, {
    handlers: {
      unary: (_request, context) => {
        contexts.push(context);
        return {};
      },
    },
  });
  await client.unary({}, { timeoutMs: 5_000 });
  await client.unary({});
  const [first, second] = contexts;
  assert.deepEqual(first?.method, {
    service: "grove.test.v1.EchoService",
    name: "Unary",
    path: "/grove.test.v1.EchoService/Unary",
    kind: "unary",
    isInstant: false,
  });
  assert.equal(first?.peer.address, "127.0.0.1");
  assert.notEqual(first?.peer.port, port);
  assert.equal(first?.peer.encrypted, false);
  assert.equal(first?.peer.certificate, undefined);
  assert((first?.timeoutMs ?? 0) > 4_000 && (first?.timeoutMs ?? 0) <= 5_000);
  assert.equal(second?.timeoutMs, undefined);
  // The call has ended, and all work for it must stop.
  assert.equal(first?.signal.aborted, false);
});

test("addresses are bound without ::ffff: and without a zone", () => {
  assert.equal(normalAddress("::ffff:127.0.0.1"), "127.0.0.1");
  assert.equal(normalAddress("::FFFF:10.0.0.1"), "10.0.0.1");
  assert.equal(normalAddress("fe80::1%eth0"), "fe80::1");
  assert.equal(normalAddress("::1"), "::1");
  assert.equal(normalAddress("192.168.0.1"), "192.168.0.1");
});

test(
  "a client that disconnects aborts the handler's signal at once, and an unread stream too",
  TIMEOUT,
  async (t) => {
    const aborted: string[] = [];
    const { server, port } = await setUp(t, {
      handlers: {
        unary: async (_request, { signal }) => {
          await once(signal, "abort");
          aborted.push("unary");
          return {};
        },
        collect: async (_requests, { signal }) => {
          // Reads nothing: the stream is paused, and a paused stream does not close by itself.
          await once(signal, "abort");
          aborted.push("collect");
          return {};
        },
      },
    });
    const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
    const client = createClient(EchoService, channel);
    async function* flood() {
      for (let i = 0; i < 100; i++) yield { data: new Uint8Array(50_000) };
    }
    client.unary({}).catch(() => undefined);
    client.collect(flood()).catch(() => undefined);
    await until(() => server.callCount() === 2);
    await delay(50);
    channel.close();
    await until(() => server.callCount() === 0);
    assert.deepEqual(aborted.sort(), ["collect", "unary"]);
  },
);

test("a handler that answers before it has read everything ends the call well", TIMEOUT, async (t) => {
  const { client } = await setUp(t, {
    handlers: {
      collect: () => ({ text: "enough" }),
      async *converse(requests) {
        for await (const { text } of requests) {
          yield { text };
          return;
        }
      },
    },
  });
  async function* flood() {
    for (let i = 0; i < 1_000; i++) yield { data: new Uint8Array(10_000), text: "first" };
  }
  for (let i = 0; i < 10; i++) {
    assert.equal((await client.collect(flood())).text, "enough");
    assert.deepEqual(
      (await all(client.converse(flood()))).map(({ text }) => text),
      ["first"],
    );
  }
});

test(
  "a large reply to gzip requests comes compressed, a small one and one to a plain request do not",
  TIMEOUT,
  async (t) => {
    const { port } = await setUp(t, {});
    const session = connect(`http://127.0.0.1:${port}`);
    t.after(async () => session.destroy());
    const call = async (
      text: string,
      encoding: string,
    ): Promise<{ encoding: unknown; flag: number; bytes: number }> => {
      const stream = session.request({
        ":method": "POST",
        ":path": "/grove.test.v1.EchoService/Unary",
        "content-type": "application/grpc",
        "grpc-encoding": encoding,
        "grpc-accept-encoding": "identity,gzip",
      });
      const body = toBinary(EchoRequestSchema, create(EchoRequestSchema, { text }));
      stream.end(frame(encoding === "gzip" ? gzipSync(body) : body, encoding === "gzip"));
      const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      await once(stream, "end");
      const reply = Buffer.concat(chunks);
      return { encoding: headers["grpc-encoding"], flag: reply[0] as number, bytes: reply.length };
    };
    const large = await call("a".repeat(10_000), "gzip");
    assert.deepEqual([large.encoding, large.flag], ["gzip", 1]);
    assert(large.bytes < 1_000);
    assert.equal((await call("a", "gzip")).flag, 0);
    assert.deepEqual(await call("a".repeat(10_000), "identity"), {
      encoding: undefined,
      flag: 0,
      bytes: 10_008,
    });
  },
);

test("health says what serves, tells watchers of every change, and bounds them", TIMEOUT, async (t) => {
  const { server, channel } = await setUp(t, {});
  const health = new HealthService();
  health.addTo(server);
  health.setServing("files", true);
  const client = createClient(Health, channel);
  const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;
  assert.equal((await client.check({})).status, SERVING);
  assert.equal((await client.check({ service: "files" })).status, SERVING);
  await assert.rejects(client.check({ service: "other" }), { code: Code.NOT_FOUND });
  const watch = client.watch({ service: "files" })[Symbol.asyncIterator]();
  const unknown = client.watch({ service: "other" })[Symbol.asyncIterator]();
  assert.equal((await watch.next()).value?.status, SERVING);
  assert.equal((await unknown.next()).value?.status, SERVICE_UNKNOWN);
  health.setServing("files", false);
  health.setServing("other", true);
  assert.equal((await watch.next()).value?.status, NOT_SERVING);
  assert.equal((await unknown.next()).value?.status, SERVING);
  await watch.return?.();
  await unknown.return?.();
  await until(() => server.callCount() === 0);
});

test("a watch of the health that stays open does not hold up the server's stop", TIMEOUT, async (t) => {
  const { server, channel } = await setUp(t, {});
  const health = new HealthService();
  health.addTo(server);
  const watch = createClient(Health, channel).watch({})[Symbol.asyncIterator]();
  assert.equal((await watch.next()).value?.status, HealthCheckResponse_ServingStatus.SERVING);
  const ended = assert.rejects(watch.next(), { code: Code.UNAVAILABLE });
  // Longer than the test may last.
  await server.drain(60_000);
  await ended;
});

test("reflection gives the files of a service, and says what it does not have", TIMEOUT, async (t) => {
  const { server, channel } = await setUp(t, {});
  addReflection(server, [EchoService]);
  const client = createClient(ServerReflection, channel);
  type Ask = MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"];
  const ask = async (messageRequest: NonNullable<Ask>) => {
    async function* requests() {
      yield { messageRequest };
    }
    const [reply] = await all(client.serverReflectionInfo(requests()));
    assert(reply !== undefined);
    return reply.messageResponse;
  };
  const list = await ask({ case: "listServices", value: "" });
  assert(list.case === "listServicesResponse");
  assert.deepEqual(
    list.value.service.map(({ name }) => name),
    ["grove.test.v1.EchoService", "grpc.reflection.v1.ServerReflection"],
  );
  const symbols = ["grove.test.v1.EchoService", "grove.test.v1.EchoService.Unary", "grove.test.v1.Chunk"];
  for (const value of symbols) {
    const answer = await ask({ case: "fileContainingSymbol", value });
    assert(answer.case === "fileDescriptorResponse", value);
    const file = fromBinary(FileDescriptorProtoSchema, answer.value.fileDescriptorProto[0] as Uint8Array);
    assert.equal(file.package, "grove.test.v1");
  }
  assert.equal((await ask({ case: "fileByFilename", value: "echo.proto" })).case, "fileDescriptorResponse");
  for (const asked of [
    { case: "fileContainingSymbol", value: "no.Such" },
    { case: "fileByFilename", value: "no.proto" },
  ] as const) {
    const answer = await ask(asked);
    assert(answer.case === "errorResponse");
    assert.equal(answer.value.errorCode, Code.NOT_FOUND);
  }
});
