// Tests of uploads with an encoder of their own for what precedes each payload.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { GrpcServer } from "./server.ts";
import { serve } from "./sliced.fixture.ts";
import { slicedClientStream } from "./sliced.ts";

test("an upload's own encoder writes what precedes a payload, but for what it leaves", {
  timeout: 60_000,
}, async (t) => {
  const seen: unknown[] = [];
  const server = new GrpcServer();
  server.addService(EchoService, {
    upload: slicedClientStream("chunk.data", async (requests) => {
      for await (const { message, payload } of requests) {
        const bytes = await payload.read();
        seen.push(message.part.case === "chunk" ? [message.part.value.offset, bytes?.length] : undefined);
      }
      return {};
    }),
  });
  const channel = await serve(t, server);
  const heads = [Buffer.from([9, 9, 9, 9, 9, 18, 7, 8, 7, 26, 3]), undefined];
  const upload = await channel.slicedUpload(EchoService.method.upload, "chunk.data", {}, () => heads.shift());
  for (const offset of [1n, 2n])
    await upload.writer.whole({ part: { case: "chunk", value: { offset } } }, [Buffer.alloc(3)]);
  await upload.finish();
  assert.deepEqual(seen, [
    [7n, 3],
    [2n, 3],
  ]);
});
