// The server and the client of the room, against each other.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, GrpcChannel } from "./client.ts";
import { echoHandlers } from "./echo-service.ts";
import { EchoService } from "./gen/echo_pb.ts";
import { GrpcServer } from "./server.ts";
import { Code, StatusError } from "./status.ts";

const setUp = async (t: { after(fn: () => Promise<void>): void }) => {
  const server = new GrpcServer();
  server.addService(EchoService, echoHandlers());
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const channel = new GrpcChannel({ addresses: [`127.0.0.1:${port}`] });
  t.after(async () => {
    channel.close();
    await server.close();
  });
  return { server, channel, client: createClient(EchoService, channel), port };
};

test("the four call kinds answer", { timeout: 20_000 }, async (t) => {
  const { client } = await setUp(t);
  const one = await client.unary({ text: "hello", count: 3 }, { metadata: { "x-a": "b" } });
  assert.equal(one.text, "hello");
  assert.deepEqual(one.metadata, { "x-a": "b" });
  const counts: number[] = [];
  for await (const reply of client.expand({ count: 3 })) counts.push(reply.count);
  assert.deepEqual(counts, [0, 1, 2]);
  async function* requests() {
    yield { text: "a" };
    yield { text: "b" };
  }
  assert.equal((await client.collect(requests())).text, "a,b");
  const texts: string[] = [];
  for await (const reply of client.converse(requests())) texts.push(reply.text);
  assert.deepEqual(texts, ["a", "b"]);
  await assert.rejects(client.unary({ text: "no %", failCode: 5 }), (error) => {
    assert(error instanceof StatusError);
    assert.equal(error.code, Code.NOT_FOUND);
    assert.equal(error.message, "no %");
    return true;
  });
});

test("the sliced form carries a file both ways", { timeout: 20_000 }, async (t) => {
  const { channel } = await setUp(t);
  const upload = await channel.slicedUpload(EchoService.method.upload, "chunk.data");
  const block = Buffer.alloc(100_000, 1);
  for (let i = 0; i < 3; i++) {
    await upload.writer.message({ part: { case: "chunk", value: { offset: BigInt(i) } } }, 4_000_000);
    for (let j = 0; j < 40; j++) await upload.writer.slice(block);
  }
  const reply = await upload.finish();
  assert.equal(reply.bytesWritten, 12_000_000n);
  assert.equal(reply.messages, 3);
  const download = channel.slicedDownload(EchoService.method.download, "chunk.data", {
    size: 9_000_000n,
    chunkBytes: 4_000_000,
  });
  let bytes = 0;
  for await (const part of download) {
    assert.equal(part.message.part.case, "chunk");
    for (;;) {
      const slice = await part.payload.read();
      if (slice === null) break;
      bytes += slice.length;
    }
  }
  assert.equal(bytes, 9_000_000);
});
