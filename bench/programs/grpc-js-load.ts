// The load for `@grpc/grpc-js`: Grove's messages by protobuf-es, as definitions of its methods.

import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import type { MethodDefinition } from "@grpc/grpc-js";
import { type Attr, AttrSchema } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  type CreateFileRequest,
  CreateFileRequestSchema,
  type DownloadRequest,
  DownloadRequestSchema,
  type DownloadResponse,
  DownloadResponseSchema,
  type UploadRequest,
  UploadRequestSchema,
  type UploadResponse,
  UploadResponseSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** Receive window of both sides. grpc-js has an option for clients alone; the server wraps node:http2. */
export const WINDOW_BYTES: number = 16 * 1_048_576;

/** CreateFile, UploadFile and DownloadFile for grpc-js. */
export const fileService: {
  readonly create: MethodDefinition<CreateFileRequest, Attr>;
  readonly upload: MethodDefinition<UploadRequest, UploadResponse>;
  readonly download: MethodDefinition<DownloadRequest, DownloadResponse>;
} = {
  create: {
    path: "/grove.v1.FileServer/CreateFile",
    requestStream: false,
    responseStream: false,
    ...codec("request", CreateFileRequestSchema),
    ...codec("response", AttrSchema),
  },
  upload: {
    path: "/grove.v1.FileServer/UploadFile",
    requestStream: true,
    responseStream: false,
    ...codec("request", UploadRequestSchema),
    ...codec("response", UploadResponseSchema),
  },
  download: {
    path: "/grove.v1.FileServer/DownloadFile",
    requestStream: false,
    responseStream: true,
    ...codec("request", DownloadRequestSchema),
    ...codec("response", DownloadResponseSchema),
  },
};

type Codec<Side extends "request" | "response", S extends DescMessage> = {
  [Key in `${Side}Serialize`]: (message: MessageShape<S>) => Buffer;
} & { [Key in `${Side}Deserialize`]: (bytes: Buffer) => MessageShape<S> };

function codec<Side extends "request" | "response", S extends DescMessage>(
  side: Side,
  schema: S,
): Codec<Side, S> {
  return {
    [`${side}Serialize`]: (message: MessageShape<S>): Buffer => {
      const bytes = toBinary(schema, message);
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    },
    [`${side}Deserialize`]: (bytes: Buffer): MessageShape<S> => fromBinary(schema, bytes),
  } as Codec<Side, S>;
}
