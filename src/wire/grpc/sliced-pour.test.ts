// Payloads that are poured: each slice is taken as it comes, and the taker holds the sender back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { until } from "#testing/until.ts";
import { frame } from "#wire/framing/frames.ts";
import { EchoService, UploadRequestSchema } from "#wire/framing/gen/echo_pb.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { GrpcServer } from "./server.ts";
import { inbox, serve } from "./sliced.fixture.ts";
import { slicedServerStream } from "./sliced.ts";

const TIMEOUT = { timeout: 60_000 };

/** A message of one chunk in gRPC's frame, and where its payload begins. */
const chunkWire = (data: Uint8Array): { readonly wire: Buffer; readonly payloadAt: number } => {
  const value = { offset: 0n, data };
  const body = toBinary(UploadRequestSchema, create(UploadRequestSchema, { part: { case: "chunk", value } }));
  const wire = frame(body, false);
  return { wire, payloadAt: wire.length - data.length };
};

test(
  "a poured payload comes slice by slice as it arrives, and waits where its taker does",
  TIMEOUT,
  async () => {
    const { inbox: made, pauses } = inbox();
    const { wire, payloadAt } = chunkWire(Buffer.alloc(600_000, 1));
    made.push(wire.subarray(0, payloadAt + 10));
    const taken: number[] = [];
    let room: PromiseWithResolvers<void> | undefined;
    const part = await made.next();
    assert(part !== null);
    const poured = part.payload.pour((slice) => {
      taken.push(slice.length);
      return room?.promise ?? true;
    });
    assert.deepEqual(taken, [10]);
    await delay(0);
    made.push(wire.subarray(payloadAt + 10, payloadAt + 30));
    assert.deepEqual(taken, [10, 20]);
    room = Promise.withResolvers();
    made.push(wire.subarray(payloadAt + 30, payloadAt + 60));
    assert.deepEqual(taken, [10, 20, 30]);
    made.push(wire.subarray(payloadAt + 60, payloadAt + 400_000));
    await delay(0);
    assert.deepEqual(taken, [10, 20, 30]);
    assert.equal(pauses(), 1);
    const { resolve } = room;
    room = undefined;
    resolve();
    await delay(0);
    assert.deepEqual(taken, [10, 20, 30, 399_940]);
    made.push(wire.subarray(payloadAt + 400_000));
    await poured;
    assert.deepEqual(taken, [10, 20, 30, 399_940, 200_000]);
    made.end();
    assert.equal(await made.next(), null);
  },
);

test("a pour ends as its call does, and with what its taker throws or rejects with", TIMEOUT, async (t) => {
  const { inbox: made } = inbox();
  const { wire } = chunkWire(Buffer.alloc(1_000));
  made.push(wire.subarray(0, 500));
  const lost = (await made.next())?.payload.pour(() => true);
  await delay(0);
  made.fail(new StatusError(Code.UNAVAILABLE, "lost"));
  await assert.rejects(lost ?? Promise.resolve(), { code: Code.UNAVAILABLE });

  const server = new GrpcServer({ onError: () => undefined });
  const ended: unknown[] = [];
  server.addService(EchoService, {
    download: slicedServerStream("chunk.data", async (_request, { signal }, writer) => {
      signal.addEventListener("abort", () => ended.push(signal.reason));
      await writer.message({ part: { case: "chunk", value: {} } }, 8_000_000);
      for (let left = 8_000_000; left > 0; left -= 100_000) {
        const written = writer.slice(Buffer.alloc(100_000));
        if (written !== true) await written;
      }
    }),
  });
  const channel = await serve(t, server);
  for (const fail of [
    () => {
      throw new Error("enough");
    },
    () => Promise.reject(new Error("enough")),
  ]) {
    const download = channel.slicedDownload(EchoService.method.download, "chunk.data", {});
    const part = await download.next();
    assert(part !== null);
    let slices = 0;
    await assert.rejects(
      part.payload.pour(() => (++slices > 20 ? fail() : true)),
      { message: "enough" },
    );
    assert.equal(slices, 21);
    download.cancel();
  }
  await until(() => ended.length === 2);
});
