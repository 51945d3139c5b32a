// The other library's client at its best: a large window, checksums made and verified, nothing stored.
import { crc32 } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import type { ClientReadableStream, ClientWritableStream, ServiceError } from "@grpc/grpc-js";
import { ChannelCredentials, makeClientConstructor } from "@grpc/grpc-js";
import { CHUNK_BYTES } from "#base/limits.ts";
import { trustedAuthority } from "#bench/certificates.ts";
import { callsPerSecond, mibPerSecond } from "#bench/pump.ts";
import { serveTasks } from "#bench/tasks.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type {
  CreateFileRequest,
  DownloadRequest,
  DownloadResponse,
  UploadRequest,
  UploadResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import {
  CreateFileRequestSchema,
  DownloadRequestSchema,
  UploadRequestSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { fileService, WINDOW_BYTES } from "./grpc-js-load.ts";

interface FileClient {
  create(request: CreateFileRequest, answer: (error: ServiceError | null, value?: Attr) => void): void;
  upload(
    answer: (error: ServiceError | null, value?: UploadResponse) => void,
  ): ClientWritableStream<UploadRequest>;
  download(request: DownloadRequest): ClientReadableStream<DownloadResponse>;
  close(): void;
}

let client: FileClient | undefined;

serveTasks(
  {
    connect: (port) => {
      const ca = trustedAuthority();
      const credentials =
        ca === undefined ? ChannelCredentials.createInsecure() : ChannelCredentials.createSsl(ca);
      const Client = makeClientConstructor(fileService, "FileServer");
      client = new Client(`127.0.0.1:${String(port)}`, credentials, {
        "grpc-node.flow_control_window": WINDOW_BYTES,
        // It uses an address as a server's name, which node:tls refuses.
        ...(ca === undefined ? {} : { "grpc.ssl_target_name_override": "localhost" }),
        "grpc.max_receive_message_length": -1,
        "grpc.max_send_message_length": -1,
      }) as unknown as FileClient;
      return null;
    },
    create: (input) => {
      const { files, inFlight, bytes } = input as { files: number; inFlight: number; bytes: number };
      const data = Buffer.alloc(bytes, 0xa5);
      return callsPerSecond(files, inFlight, (at) => createOne(`/file-${at}`, data));
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
  },
  () => client?.close(),
);

function createOne(path: string, data: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    connected().create(create(CreateFileRequestSchema, { path, data }), (error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
}

async function upload(size: number): Promise<void> {
  const content = Buffer.alloc(CHUNK_BYTES, 0xa5);
  const answered = new Promise<UploadResponse>((resolve, reject) => {
    const call = connected().upload((error, value) => {
      if (error !== null || value === undefined) reject(error ?? new Error("no answer"));
      else resolve(value);
    });
    call.on("error", reject);
    call.write(
      create(UploadRequestSchema, { part: { case: "header", value: { path: "/x", size: BigInt(size) } } }),
    );
    let offset = 0;
    const send = (): void => {
      while (offset < size) {
        const data = content.subarray(0, Math.min(CHUNK_BYTES, size - offset));
        const value = { offset: BigInt(offset), crc32: crc32(data), data };
        offset += data.length;
        if (!call.write(create(UploadRequestSchema, { part: { case: "chunk", value } }))) {
          call.once("drain", send);
          return;
        }
      }
      call.end();
    };
    send();
  });
  if ((await answered).bytesWritten !== BigInt(size)) throw new Error("the server counted other bytes");
}

function download(size: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    const call = connected().download(create(DownloadRequestSchema, { path: "/x", length: BigInt(size) }));
    call.on("data", ({ part }: DownloadResponse) => {
      if (part.case !== "chunk") return;
      if (crc32(part.value.data) !== part.value.crc32) reject(new Error("checksum"));
      bytes += part.value.data.length;
    });
    call.on("error", reject);
    call.on("end", () =>
      bytes === size ? resolve() : reject(new Error("other bytes came than were asked for")),
    );
  });
}

function connected(): FileClient {
  if (client === undefined) throw new Error("not connected");
  return client;
}
