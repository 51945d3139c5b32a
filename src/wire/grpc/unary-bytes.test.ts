// Replies encoded by the handler or decoded by the caller have the same bytes and the same failures.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { EncodedReply } from "#wire/framing/encoded-reply.ts";
import { EchoRequestSchema, EchoResponseSchema, EchoService } from "#wire/framing/gen/echo_pb.ts";
import type { RequestEncoder } from "#wire/framing/requests.ts";
import { Code } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "./client.ts";
import { echoHandlers } from "./echo-service.ts";
import { GrpcServer } from "./server.ts";

for (const compress of [false, true]) {
  test(`the bytes of a reply decode to it${compress ? ", also when it came compressed" : ""}`, {
    timeout: 60_000,
  }, async (t) => {
    const server = new GrpcServer();
    server.addService(EchoService, echoHandlers());
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
    t.after(async () => {
      channel.close();
      await server.close();
    });
    const text = "all of it ".repeat(1_000);
    const bytes = await channel.unaryBytes(EchoService.method.unary, { text }, { compress });
    assert.equal(fromBinary(EchoResponseSchema, bytes).text, text);
    const refused = channel.unaryBytes(EchoService.method.unary, { failCode: Code.NOT_FOUND }, { compress });
    await assert.rejects(refused, { code: Code.NOT_FOUND });
  });
}

test("what a handler has encoded is the reply, within the same limit of size", {
  timeout: 60_000,
}, async (t) => {
  const server = new GrpcServer({ limits: { sendMessageBytes: 1_000 } });
  server.addService(EchoService, {
    unary: ({ count }) =>
      new EncodedReply(
        Buffer.concat([
          Buffer.alloc(EncodedReply.HEAD_BYTES),
          toBinary(EchoResponseSchema, create(EchoResponseSchema, { text: "x".repeat(count) })),
        ]),
      ),
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
  t.after(async () => {
    channel.close();
    await server.close();
  });
  const client = createClient(EchoService, channel);
  assert.equal((await client.unary({ count: 900 })).text, "x".repeat(900));
  await assert.rejects(client.unary({ count: 1_000 }), { code: Code.RESOURCE_EXHAUSTED });
});

test("a request encoded by the caller's own encoder is sent as it is; what that leaves goes the general way", {
  timeout: 60_000,
}, async (t) => {
  const server = new GrpcServer();
  server.addService(EchoService, echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`], limits: { sendMessageBytes: 1_000 } });
  t.after(async () => {
    channel.close();
    await server.close();
  });
  const asked: unknown[] = [];
  const encode: RequestEncoder = (request, headBytes) => {
    asked.push(request);
    const { text } = request as { readonly text: string };
    if (text === "left") return undefined;
    const body = toBinary(EchoRequestSchema, create(EchoRequestSchema, { text: `${text}, by its own` }));
    return Buffer.concat([Buffer.alloc(headBytes), body]);
  };
  const client = createClient(EchoService, channel, undefined, new Map([[EchoRequestSchema, encode]]));
  assert.equal((await client.unary({ text: "sent" })).text, "sent, by its own");
  assert.equal((await client.unary({ text: "left" })).text, "left");
  // The general encoder has the words for a request that is too large.
  await assert.rejects(client.unary({ text: "x".repeat(1_001) }), { code: Code.RESOURCE_EXHAUSTED });
  assert.equal(asked.length, 3);
  assert.equal((await client.unary({ text: "folded" }, { compress: true })).text, "folded");
  assert.equal(asked.length, 3, "what is compressed has no room for a head");
});
