// The gRPC room's server without Grove: echoes, receives and sends streams, without storage or checksums.
import { serverCertificate } from "#bench/certificates.ts";
import { serveTasks } from "#bench/tasks.ts";
import { EchoService } from "#wire/framing/gen/echo_pb.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { slicedClientStream, slicedServerStream } from "#wire/grpc/sliced.ts";

const PIECE_BYTES = 262_144;
const piece = Buffer.alloc(PIECE_BYTES, 0xa5);

const tls = serverCertificate();
const server = new GrpcServer(tls === undefined ? {} : { tls });
server.addService(EchoService, {
  unary: (request) => ({ text: request.text, data: request.data }),
  upload: slicedClientStream("chunk.data", async (requests) => {
    let bytes = 0;
    for await (const { payload } of requests) {
      for (;;) {
        const read = payload.read();
        const slice = read instanceof Promise ? await read : read;
        if (slice === null) break;
        bytes += slice.length;
      }
    }
    return { bytesWritten: BigInt(bytes) };
  }),
  download: slicedServerStream("chunk.data", async (request, _context, writer) => {
    const size = Number(request.size);
    for (let offset = 0; offset < size; offset += request.chunkBytes) {
      const length = Math.min(request.chunkBytes, size - offset);
      const begun = writer.message({ part: { case: "chunk", value: { offset: BigInt(offset) } } }, length);
      if (begun !== true) await begun;
      for (let sent = 0; sent < length; sent += PIECE_BYTES) {
        const written = writer.slice(piece.subarray(0, Math.min(PIECE_BYTES, length - sent)));
        if (written !== true) await written;
      }
    }
  }),
});

serveTasks({ listen: async () => (await server.listen({ host: "127.0.0.1", port: 0 })).port }, () =>
  server.close(),
);
