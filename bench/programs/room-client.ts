// The gRPC room's client without Grove, the other end of room-server.ts.
import { create, toBinary } from "@bufbuild/protobuf";
import { trustedAuthority } from "#bench/certificates.ts";
import { callsPerSecond, mibPerSecond } from "#bench/pump.ts";
import { serveTasks } from "#bench/tasks.ts";
import { EchoRequestSchema, EchoService } from "#wire/framing/gen/echo_pb.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";

const PIECE_BYTES = 262_144;
const CHUNK_BYTES = 4_000_000;
const piece = Buffer.alloc(PIECE_BYTES, 0xa5);
let channel: GrpcChannel | undefined;

serveTasks(
  {
    connect: (port) => {
      const ca = trustedAuthority();
      const addresses = [`127.0.0.1:${String(port)}`];
      channel = new GrpcChannel(ca === undefined ? { addresses } : { addresses, tls: { ca } });
      return null;
    },
    up: async (input) => {
      const start = performance.now();
      await upload(Number(input));
      return mibPerSecond(Number(input), start);
    },
    down: async (input) => {
      const start = performance.now();
      await download(Number(input));
      return mibPerSecond(Number(input), start);
    },
    // Bytes of one request on the wire, so that the raw peer can send as many.
    unaryBytes: (payloadBytes) =>
      5 +
      toBinary(EchoRequestSchema, create(EchoRequestSchema, { data: new Uint8Array(Number(payloadBytes)) }))
        .length,
    unary: (input) => {
      const { calls, inFlight, payloadBytes } = input as {
        calls: number;
        inFlight: number;
        payloadBytes: number;
      };
      const client = createClient(EchoService, connected());
      const data = Buffer.alloc(payloadBytes, 0x61);
      return callsPerSecond(calls, inFlight, async () => {
        const reply = await client.unary({ data });
        if (reply.data.length !== payloadBytes) throw new Error("a reply of another length came");
      });
    },
    // Calls whose answers say only that the bytes were taken.
    give: (input) => {
      const { calls, inFlight, bytes } = input as { calls: number; inFlight: number; bytes: number };
      const client = createClient(EchoService, connected());
      const data = Buffer.alloc(bytes, 0xa5);
      return callsPerSecond(calls, inFlight, async () => {
        if ((await client.unary({ data })).text !== "taken") throw new Error("it was not taken");
      });
    },
  },
  () => channel?.close(),
);

async function upload(size: number): Promise<void> {
  const call = await connected().slicedUpload(EchoService.method.upload, "chunk.data");
  for (let offset = 0; offset < size; offset += CHUNK_BYTES) {
    const length = Math.min(CHUNK_BYTES, size - offset);
    const begun = call.writer.message({ part: { case: "chunk", value: { offset: BigInt(offset) } } }, length);
    if (begun !== true) await begun;
    for (let sent = 0; sent < length; sent += PIECE_BYTES) {
      const written = call.writer.slice(piece.subarray(0, Math.min(PIECE_BYTES, length - sent)));
      if (written !== true) await written;
    }
  }
  if ((await call.finish()).bytesWritten !== BigInt(size)) throw new Error("the server counted other bytes");
}

async function download(size: number): Promise<void> {
  const request = { size: BigInt(size), chunkBytes: CHUNK_BYTES };
  let bytes = 0;
  for await (const { payload } of connected().slicedDownload(
    EchoService.method.download,
    "chunk.data",
    request,
  )) {
    for (;;) {
      const read = payload.read();
      const slice = read instanceof Promise ? await read : read;
      if (slice === null) break;
      bytes += slice.length;
    }
  }
  if (bytes !== size) throw new Error("other bytes came than were asked for");
}

function connected(): GrpcChannel {
  if (channel === undefined) throw new Error("not connected");
  return channel;
}
