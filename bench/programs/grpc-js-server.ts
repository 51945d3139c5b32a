// The other library's server at its best: receive window raised, checksums made, small files written.
import { mkdirSync, writeFile } from "node:fs";
import http2 from "node:http2";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import type {
  ServerReadableStream,
  ServerUnaryCall,
  ServerWritableStream,
  sendUnaryData,
} from "@grpc/grpc-js";
import { CHUNK_BYTES } from "#base/limits.ts";
import { serverCertificate } from "#bench/certificates.ts";
import { serveTasks } from "#bench/tasks.ts";
import { type Attr, AttrSchema } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type {
  CreateFileRequest,
  DownloadRequest,
  DownloadResponse,
  UploadRequest,
  UploadResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { DownloadResponseSchema, UploadResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { fileService, WINDOW_BYTES } from "./grpc-js-load.ts";

// grpc-js has no option for its server's window, so node:http2 is wrapped before the library is loaded.
const { createServer, createSecureServer } = http2;
const raised = <S extends http2.Http2Server | http2.Http2SecureServer>(server: S): S => {
  server.on("session", (session: http2.ServerHttp2Session) => {
    session.setLocalWindowSize(WINDOW_BYTES);
  });
  return server;
};
const withWindow = <O extends http2.ServerOptions>(options: O): O => ({
  ...options,
  settings: { ...options.settings, initialWindowSize: WINDOW_BYTES },
});
Object.assign(http2, {
  createServer: (options: http2.ServerOptions) => raised(createServer(withWindow(options))),
  createSecureServer: (options: http2.SecureServerOptions) => raised(createSecureServer(withWindow(options))),
});
const { Server, ServerCredentials, status } = await import("@grpc/grpc-js");

const server = new Server({ "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 });
let folder = "";
server.addService(fileService, {
  create: (call: ServerUnaryCall<CreateFileRequest, Attr>, answer: sendUnaryData<Attr>) => {
    const { path, data } = call.request;
    writeFile(join(folder, path), data, (error) => {
      if (error === null) answer(null, create(AttrSchema, { path, size: BigInt(data.length) }));
      else answer({ code: status.INTERNAL, details: error.message });
    });
  },
  upload: (
    call: ServerReadableStream<UploadRequest, UploadResponse>,
    answer: sendUnaryData<UploadResponse>,
  ) => {
    let bytes = 0n;
    call.on("data", ({ part }: UploadRequest) => {
      if (part.case !== "chunk") return;
      if (crc32(part.value.data) !== part.value.crc32) {
        answer({ code: status.DATA_LOSS, details: "checksum" });
        return;
      }
      bytes += BigInt(part.value.data.length);
    });
    call.on("end", () => answer(null, create(UploadResponseSchema, { bytesWritten: bytes })));
  },
  download: (call: ServerWritableStream<DownloadRequest, DownloadResponse>) => {
    const content = Buffer.alloc(CHUNK_BYTES, 0xa5);
    const end = Number(call.request.length);
    let offset = 0;
    const send = (): void => {
      while (offset < end) {
        const data = content.subarray(0, Math.min(CHUNK_BYTES, end - offset));
        const value = { offset: BigInt(offset), crc32: crc32(data), data };
        offset += data.length;
        const message = create(DownloadResponseSchema, { part: { case: "chunk", value } });
        if (!call.write(message)) {
          call.once("drain", send);
          return;
        }
      }
      call.end();
    };
    send();
  },
});

const certificate = serverCertificate();
const credentials =
  certificate === undefined
    ? ServerCredentials.createInsecure()
    : ServerCredentials.createSsl(null, [{ cert_chain: certificate.cert, private_key: certificate.key }]);

serveTasks(
  {
    listen: () =>
      new Promise<number>((resolve, reject) =>
        server.bindAsync("127.0.0.1:0", credentials, (error, port) => {
          if (error === null) resolve(port);
          else reject(error);
        }),
      ),
    // Where CreateFile writes from now on.
    makeFolder: (path) => {
      folder = String(path);
      mkdirSync(folder);
      return null;
    },
  },
  () => server.forceShutdown(),
);
