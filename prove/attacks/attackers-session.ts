// Prepares the attacker's session, bound to its own address, and a large file.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FrameFlag, FrameType, grpcHeaders, RawHttp2 } from "#testing/raw-http2.ts";
import {
  CreateFileRequestSchema,
  RegisterClientRequestSchema,
  RegisterClientResponseSchema,
  WriteFileRequestSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";

const BIG_BYTES = 1_073_741_824n;
/** A path in the attacker's root. */
export const BIG_FILE = "/big";

/** Signs in from an address, makes the file as one hole, and returns the session's token. */
export async function prepareAttacker(port: number, from: string): Promise<string> {
  const raw = await RawHttp2.connect(port, true, from);
  try {
    const answer = await call(
      raw,
      1,
      "RegisterClient",
      "mock-jwt.attacker@example.com",
      toBinary(RegisterClientRequestSchema, create(RegisterClientRequestSchema)),
    );
    const { sessionToken } = fromBinary(RegisterClientResponseSchema, answer);
    await call(
      raw,
      3,
      "CreateFile",
      sessionToken,
      toBinary(CreateFileRequestSchema, create(CreateFileRequestSchema, { path: BIG_FILE })),
    );
    const write = create(WriteFileRequestSchema, { path: BIG_FILE, truncateSize: BIG_BYTES });
    await call(raw, 5, "WriteFile", sessionToken, toBinary(WriteFileRequestSchema, write));
    return sessionToken;
  } finally {
    raw.close();
  }
}

async function call(
  raw: RawHttp2,
  id: number,
  method: string,
  token: string,
  message: Uint8Array,
): Promise<Buffer> {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  const headers = grpcHeaders(`/grove.v1.FileServer/${method}`, [["authorization", `Bearer ${token}`]]);
  await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, id, headers);
  await raw.send(FrameType.DATA, FrameFlag.END_STREAM, id, Buffer.concat([head, message]));
  const answer = await raw.frame(({ type, streamId }) => type === FrameType.DATA && streamId === id);
  if (answer === undefined) throw new Error(`the attacker's ${method} was not answered`);
  return answer.payload.subarray(5);
}
