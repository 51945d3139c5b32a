// A client on bare node:http2 that costs little: sends the same bytes to a FileServer and to a bare server.

import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { CHUNK_BYTES } from "#base/limits.ts";
import { trustedAuthority } from "#bench/certificates.ts";
import { count } from "#bench/pump.ts";
import { serveTasks } from "#bench/tasks.ts";
import { crc32 } from "#os/crc32.ts";
import { FRAME_HEADER_BYTES, frame } from "#wire/framing/frames.ts";
import { SlicedField } from "#wire/framing/sliced-field.ts";
import {
  DeleteFileRequestSchema,
  DownloadRequestSchema,
  RegisterClientRequestSchema,
  RegisterClientResponseSchema,
  UploadRequestSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";

const STREAM_WINDOW_BYTES = 16 * 1_048_576;
const SESSION_WINDOW_BYTES = 64 * 1_048_576;
const PIECE_BYTES = 262_144;

interface Transfer {
  path: string;
  bytes: number;
  /** Makes checksums of all bytes, as a client of Grove does; otherwise it costs as little as it can. */
  checks?: boolean;
}

const content = Buffer.alloc(CHUNK_BYTES, 0xa5);
const uploadMessages = new SlicedField(UploadRequestSchema, "chunk.data");
let session: ClientHttp2Session | undefined;
let authorization = "";

serveTasks(
  {
    // A FileServer is told by the owner, who signs in; a bare server has none.
    connect: async (input) => {
      const { address, owner } = input as { address: string; owner: string };
      const ca = trustedAuthority();
      const settings = { initialWindowSize: STREAM_WINDOW_BYTES, maxFrameSize: 65_536, enablePush: false };
      const scheme = ca === undefined ? "http" : "https";
      const connecting = connect(
        `${scheme}://${address}`,
        ca === undefined ? { settings } : { settings, ca },
      );
      await new Promise((resolve, reject) => connecting.once("connect", resolve).once("error", reject));
      connecting.setLocalWindowSize(SESSION_WINDOW_BYTES);
      session = connecting;
      if (owner !== "") authorization = `Bearer ${await signedIn(owner)}`;
      return null;
    },
    up: async (input) => {
      const { path, bytes, checks } = input as unknown as Transfer;
      const stream = call("UploadFile");
      const answered = bodyOf(stream);
      for (const part of upload(path, bytes, checks === true)) {
        for (let at = 0; at < part.length; at += PIECE_BYTES) {
          if (!stream.write(part.subarray(at, at + PIECE_BYTES))) await drained(stream);
        }
      }
      stream.end();
      await answered;
      return null;
    },
    down: async (input) => {
      const { path, bytes, checks } = input as unknown as Transfer;
      const stream = call("DownloadFile");
      const succeeded = success(stream);
      stream.end(frame(toBinary(DownloadRequestSchema, create(DownloadRequestSchema, { path })), false));
      let crc = 0;
      if (checks === true) stream.on("data", (slice: Buffer) => (crc = crc32(slice, crc)));
      const received = await count(stream);
      await succeeded;
      if (received < bytes) throw new Error("fewer bytes came than were asked for");
      return null;
    },
    remove: async (path) => {
      const request = create(DeleteFileRequestSchema, { path: String(path) });
      const stream = call("DeleteFile");
      stream.end(frame(toBinary(DeleteFileRequestSchema, request), false));
      await bodyOf(stream);
      return null;
    },
  },
  () => session?.close(),
);

/** Signs in and returns the session's token. */
async function signedIn(owner: string): Promise<string> {
  authorization = `Bearer mock-jwt.${owner}`;
  const request = create(RegisterClientRequestSchema, {
    clientId: "bench",
    clientVersion: "0",
    deviceName: "bench",
  });
  const stream = call("RegisterClient");
  stream.end(frame(toBinary(RegisterClientRequestSchema, request), false));
  const reply = await bodyOf(stream);
  return fromBinary(RegisterClientResponseSchema, reply.subarray(FRAME_HEADER_BYTES)).sessionToken;
}

/** The bytes of an upload, message after message; all chunks have the same content. */
function* upload(path: string, bytes: number, checks = false): Generator<Buffer> {
  const header = { path, size: BigInt(bytes), sizeKnown: true };
  yield uploadMessages.encode({ part: { case: "header", value: header } }, 0);
  const whole = crc32(content);
  for (let offset = 0; offset < bytes; offset += CHUNK_BYTES) {
    const data = content.subarray(0, Math.min(CHUNK_BYTES, bytes - offset));
    const checksum = data.length === CHUNK_BYTES && !checks ? whole : crc32(data);
    const value = { offset: BigInt(offset), crc32: checksum };
    yield uploadMessages.encode({ part: { case: "chunk", value } }, data.length);
    yield data;
  }
}

function call(method: string): ClientHttp2Stream {
  if (session === undefined) throw new Error("not connected");
  return session.request({
    ":method": "POST",
    ":path": `/grove.v1.FileServer/${method}`,
    "content-type": "application/grpc",
    te: "trailers",
    ...(authorization === "" ? {} : { authorization }),
  });
}

async function bodyOf(stream: ClientHttp2Stream): Promise<Buffer> {
  const succeeded = success(stream);
  const slices: Buffer[] = [];
  stream.on("data", (slice: Buffer) => slices.push(slice));
  await succeeded;
  return Buffer.concat(slices);
}

/** Resolves at the stream's end, after a gRPC status of success where there is one. */
function success(stream: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve, reject) => {
    let status = "0";
    let reason = "";
    const told = (headers: Readonly<Record<string, unknown>>): void => {
      status = String(headers["grpc-status"] ?? status);
      reason = String(headers["grpc-message"] ?? reason);
    };
    stream.on("response", told);
    stream.on("trailers", told);
    stream.once("error", reject);
    stream.once("close", () => {
      if (status === "0" && stream.rstCode === 0) resolve();
      else reject(new Error(`the call failed with status ${status}: ${reason}`));
    });
  });
}

function drained(stream: ClientHttp2Stream): Promise<unknown> {
  return new Promise((resolve) => stream.once("drain", resolve));
}
