// The sliced form: payloads pass in slices, and every message of ordinary clients is understood.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { systemClock } from "#base/clock.ts";
import { frame } from "#wire/framing/frames.ts";
import { EchoService, UploadRequestSchema } from "#wire/framing/gen/echo_pb.ts";
import { SlicedField } from "#wire/framing/sliced-field.ts";
import { Code, codeName, StatusError } from "#wire/framing/status.ts";
import { createClient } from "./client.ts";
import { GrpcServer } from "./server.ts";
import { FIELD, inbox, serve } from "./sliced.fixture.ts";
import {
  type SlicedInbox,
  type SlicedMessage,
  type SlicedSource,
  slicedClientStream,
  slicedServerStream,
} from "./sliced.ts";

type Upload = typeof UploadRequestSchema;
const TIMEOUT = { timeout: 60_000 };

const payloadOf = async (part: SlicedMessage<Upload>): Promise<Buffer> => {
  const slices: Buffer[] = [];
  for (;;) {
    const slice = await part.payload.read();
    if (slice === null) break;
    slices.push(slice);
  }
  return Buffer.concat(slices);
};

const readAll = async (source: SlicedSource<Upload>): Promise<[MessageInitShape<Upload>, Buffer][]> => {
  const read: [MessageInitShape<Upload>, Buffer][] = [];
  for await (const part of source) {
    const payload = await payloadOf(part);
    assert.equal(payload.length, part.payloadBytes);
    read.push([part.message, payload]);
  }
  return read;
};

const chunkOf = (message: MessageInitShape<Upload>) => {
  assert(message.part?.case === "chunk");
  return message.part.value;
};

const feed = (to: SlicedInbox<Upload>, wire: Buffer, cuts: readonly number[]): void => {
  for (let at = 0, i = 0; at < wire.length; i++) {
    const end = at + (cuts[i % cuts.length] as number);
    to.push(wire.subarray(at, end));
    at = end;
  }
  to.end();
};

const chunk = fc.record({
  offset: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  crc32: fc.option(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { nil: undefined }),
  data: fc.uint8Array({ maxLength: 400 }),
});
const CUTS = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1 });

test("messages of an ordinary encoder are read the same, wherever the stream is cut", TIMEOUT, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(chunk, { maxLength: 6 }), CUTS, async (chunks, cuts) => {
      const bodies = chunks.map(({ offset, crc32, data }) => {
        const value = crc32 === undefined ? { offset, data } : { offset, crc32, data };
        return toBinary(UploadRequestSchema, create(UploadRequestSchema, { part: { case: "chunk", value } }));
      });
      const made = inbox().inbox;
      feed(made, Buffer.concat(bodies.map((body) => frame(body, false))), cuts);
      const read = await readAll(made);
      assert.equal(read.length, chunks.length);
      for (const [i, [message, payload]] of read.entries()) {
        const got = chunkOf(message);
        assert.equal(got.offset, chunks[i]?.offset);
        assert.equal(got.crc32, chunks[i]?.crc32);
        assert.equal(got.data?.length, 0);
        assert.equal(Buffer.compare(payload, chunks[i]?.data ?? Buffer.alloc(0)), 0);
      }
    }),
  );
});

test("what the sliced writer encodes is what an ordinary encoder would", () => {
  fc.assert(
    fc.property(chunk, ({ offset, crc32, data }) => {
      const value = crc32 === undefined ? { offset } : { offset, crc32 };
      const head = FIELD.encode({ part: { case: "chunk", value } }, data.length);
      const whole = { ...value, data: data.length === 0 ? new Uint8Array() : data };
      const body = toBinary(
        UploadRequestSchema,
        create(UploadRequestSchema, { part: { case: "chunk", value: whole } }),
      );
      if (data.length > 0) assert.equal(Buffer.compare(Buffer.concat([head, data]), frame(body, false)), 0);
      assert.equal(head.readUInt32BE(1), head.length - 5 + data.length);
    }),
  );
  const header = FIELD.encode({ part: { case: "header", value: { path: "a" } } }, 0);
  const plain = create(UploadRequestSchema, { part: { case: "header", value: { path: "a" } } });
  assert.equal(Buffer.compare(header, frame(toBinary(UploadRequestSchema, plain), false)), 0);
  assert.throws(() => FIELD.encode({ part: { case: "header", value: {} } }, 1), TypeError);
});

test(
  "a chunk whose data comes first, or before a field of the message, takes the ordinary decoder",
  TIMEOUT,
  async () => {
    const data = Buffer.from("payload");
    const dataFirst = new BinaryWriter()
      .tag(2, 2)
      .fork()
      .tag(3, 2)
      .bytes(data)
      .tag(1, 0)
      .uint64(7n)
      .join()
      .finish();
    const unknownAfter = new BinaryWriter()
      .tag(2, 2)
      .fork()
      .tag(3, 2)
      .bytes(data)
      .join()
      .tag(99, 0)
      .uint32(1)
      .finish();
    const unknownBefore = new BinaryWriter()
      .tag(99, 2)
      .bytes(Buffer.alloc(50))
      .tag(2, 2)
      .fork()
      .tag(3, 2)
      .bytes(data)
      .join()
      .finish();
    const twice = new BinaryWriter()
      .tag(2, 2)
      .fork()
      .tag(1, 0)
      .uint64(7n)
      .tag(3, 2)
      .bytes(Buffer.from("old"))
      .join()
      .tag(2, 2)
      .fork()
      .tag(3, 2)
      .bytes(data)
      .join()
      .finish();
    for (const body of [dataFirst, unknownAfter, unknownBefore, twice]) {
      for (const cut of [1, 2, 3, 5, 1_000]) {
        const made = inbox().inbox;
        feed(made, frame(body, false), [cut]);
        const read = await readAll(made);
        assert.equal(read[0]?.[1].toString(), "payload");
        assert(read[0] !== undefined);
        assert.equal(chunkOf(read[0][0]).data?.length, 0);
      }
    }
  },
);

test(
  "a payload larger than the queue pauses the stream, and asking for the next message drops the rest",
  TIMEOUT,
  async () => {
    const { inbox: made, pauses } = inbox();
    const value = { offset: 0n, data: new Uint8Array(1_000_000) };
    const body = toBinary(
      UploadRequestSchema,
      create(UploadRequestSchema, { part: { case: "chunk", value } }),
    );
    const wire = Buffer.concat([frame(body, false), frame(body, false)]);
    made.push(wire.subarray(0, 200_000));
    assert.equal(pauses(), 0);
    made.push(wire.subarray(200_000, 500_000));
    assert.equal(pauses(), 1);
    const first = await made.next();
    assert.equal(first?.payloadBytes, 1_000_000);
    assert((await first?.payload.read()) instanceof Buffer);
    const second = made.next();
    made.push(wire.subarray(500_000));
    made.end();
    const part = await second;
    assert(part !== null);
    assert.equal((await payloadOf(part)).length, 1_000_000);
    assert.equal(await first?.payload.read(), null);
    assert.equal(await made.next(), null);
  },
);

test("a path that names no bytes field is refused when the service is added", () => {
  for (const path of ["chunk", "chunk.offset", "nothing", "header.path", "chunk.data.more"]) {
    assert.throws(() => new SlicedField(UploadRequestSchema, path), TypeError, path);
  }
});

test("a writer that gives more or fewer bytes than it announced fails the call", TIMEOUT, async (t) => {
  const server = new GrpcServer({ onError: () => undefined });
  server.addService(EchoService, {
    download: slicedServerStream("chunk.data", async (request, _context, writer) => {
      await writer.message({ part: { case: "chunk", value: {} } }, 10);
      await writer.slice(Buffer.alloc(Number(request.size)));
    }),
  });
  const channel = await serve(t, server);
  const client = createClient(EchoService, channel);
  const lengthOf = async (size: bigint): Promise<number> => {
    let bytes = 0;
    for await (const { part } of client.download({ size }))
      bytes += part.case === "chunk" ? part.value.data.length : 0;
    return bytes;
  };
  assert.equal(await lengthOf(10n), 10);
  for (const size of [9n, 11n]) await assert.rejects(lengthOf(size), { code: Code.UNKNOWN });
});

test(
  "a message whose parts leave in one write is read like any, and none begins inside another",
  TIMEOUT,
  async (t) => {
    const server = new GrpcServer({ onError: () => undefined });
    const parts = [Buffer.alloc(200_000, 1), Buffer.alloc(62_144, 2)];
    server.addService(EchoService, {
      download: slicedServerStream("chunk.data", async ({ size }, _context, writer) => {
        await writer.whole({ part: { case: "chunk", value: { offset: size } } }, parts);
        if (size > 0n) await writer.message({ part: { case: "chunk", value: {} } }, 10);
        await writer.whole({ part: { case: "chunk", value: {} } }, []);
      }),
    });
    const client = createClient(EchoService, await serve(t, server));
    const bodies: Buffer[] = [];
    for await (const { part } of client.download({ size: 0n }))
      if (part.case === "chunk") bodies.push(Buffer.from(part.value.data));
    assert.deepEqual(bodies, [Buffer.concat(parts), Buffer.alloc(0)]);
    await assert.rejects(
      async () => {
        for await (const { part } of client.download({ size: 1n })) assert.equal(part.case, "chunk");
      },
      { code: Code.UNKNOWN },
    );
  },
);

test(
  "an upload that the server refuses early fails at the writer with the server's status",
  TIMEOUT,
  async (t) => {
    const server = new GrpcServer();
    server.addService(EchoService, {
      upload: slicedClientStream("chunk.data", async (requests) => {
        const first = await requests.next();
        await first?.payload.read();
        throw new StatusError(Code.RESOURCE_EXHAUSTED, "storage quota exceeded");
      }),
    });
    const channel = await serve(t, server);
    const upload = await channel.slicedUpload(EchoService.method.upload, "chunk.data");
    const send = async (): Promise<void> => {
      for (let i = 0; i < 10_000; i++) {
        await upload.writer.message({ part: { case: "chunk", value: {} } }, 100_000);
        await upload.writer.slice(Buffer.alloc(100_000));
      }
    };
    const expected = { code: Code.RESOURCE_EXHAUSTED, message: "storage quota exceeded" };
    await assert.rejects(send(), expected);
    await assert.rejects(upload.finish(), expected);
  },
);

test("a writer knows that its reader takes nothing, and goes on when it does", TIMEOUT, async (t) => {
  const stalled = Promise.withResolvers<number>();
  const server = new GrpcServer();
  server.addService(EchoService, {
    download: slicedServerStream("chunk.data", async (_request, _context, writer) => {
      await writer.message({ part: { case: "chunk", value: {} } }, 8_000_000);
      let left = 8_000_000;
      while (await writer.whenWritable(100)) {
        left -= 100_000;
        void writer.slice(Buffer.alloc(100_000));
      }
      stalled.resolve(writer.stalledMs);
      while (left > 0) {
        await writer.whenWritable();
        left -= 100_000;
        const written = writer.slice(Buffer.alloc(100_000));
        if (written !== true) await written;
      }
    }),
  });
  const channel = await serve(t, server);
  const download = channel.slicedDownload(EchoService.method.download, "chunk.data", {});
  const part = await download.next();
  assert((await stalled.promise) >= 0);
  let bytes = 0;
  for (;;) {
    const slice = await part?.payload.read();
    if (slice === null || slice === undefined) break;
    bytes += slice.length;
  }
  assert.equal(bytes, 8_000_000);
  assert.equal(await download.next(), null);
  assert(systemClock.steadyMs() > 0);
});

test("an upload cancelled between two messages never looks complete to the server", TIMEOUT, async (t) => {
  const outcomes: string[] = [];
  const server = new GrpcServer();
  server.addService(EchoService, {
    upload: slicedClientStream("chunk.data", async (requests) => {
      try {
        for await (const part of requests) while ((await part.payload.read()) !== null);
        outcomes.push("complete");
      } catch (error) {
        outcomes.push(codeName((error as StatusError).code));
      }
      return {};
    }),
  });
  const channel = await serve(t, server);
  for (let i = 0; i < 20; i++) {
    const upload = await channel.slicedUpload(EchoService.method.upload, "chunk.data");
    await upload.writer.message({ part: { case: "chunk", value: {} } }, 1_000);
    await upload.writer.slice(Buffer.alloc(1_000));
    while (server.callCount() === 0) await delay(1);
    if (i % 2 === 0) await delay(5);
    upload.cancel();
    await assert.rejects(upload.finish(), { code: Code.CANCELLED });
    while (server.callCount() > 0) await delay(1);
  }
  assert.deepEqual(
    outcomes,
    Array.from({ length: 20 }, () => "CANCELLED"),
  );
});

test("cancelling a download and an upload aborts the server's handlers", TIMEOUT, async (t) => {
  const ended = [Promise.withResolvers<unknown>(), Promise.withResolvers<unknown>()];
  const server = new GrpcServer();
  server.addService(EchoService, {
    download: slicedServerStream("chunk.data", async (_request, _context, writer) => {
      try {
        for (;;) {
          await writer.message({ part: { case: "chunk", value: {} } }, 100_000);
          await writer.slice(Buffer.alloc(100_000));
        }
      } catch (error) {
        ended[0]?.resolve(error);
        throw error;
      }
    }),
    upload: slicedClientStream("chunk.data", async (requests) => {
      try {
        for await (const part of requests) while ((await part.payload.read()) !== null);
        return {};
      } catch (error) {
        ended[1]?.resolve(error);
        throw error;
      }
    }),
  });
  const channel = await serve(t, server);
  const download = channel.slicedDownload(EchoService.method.download, "chunk.data", {});
  await (await download.next())?.payload.read();
  download.cancel();
  await assert.rejects(async () => download.next(), { code: Code.CANCELLED });
  const upload = await channel.slicedUpload(EchoService.method.upload, "chunk.data");
  await upload.writer.message({ part: { case: "chunk", value: {} } }, 100_000);
  await upload.writer.slice(Buffer.alloc(50_000));
  upload.cancel();
  await assert.rejects(upload.finish(), { code: Code.CANCELLED });
  for (const { promise } of ended) assert.equal(((await promise) as StatusError).code, Code.CANCELLED);
});
