// Encodes requests that a door sends for each small file, and for each block of a large one, at a fraction of
// reflection's cost.
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { RequestEncoder } from "#wire/framing/requests.ts";
import type { HeadEncoder } from "#wire/framing/sliced-field.ts";
import {
  CreateFileRequestSchema,
  ReadFileRequestSchema,
  type UploadRequestSchema,
} from "./gen/grove/v1/file_server_pb.ts";
import { BYTES_PER_CHARACTER, EXACT_MAX, MessageWriter } from "./message-writer.ts";

type ReadFile = MessageInitShape<typeof ReadFileRequestSchema>;
type CreateFile = MessageInitShape<typeof CreateFileRequestSchema>;
type Upload = MessageInitShape<typeof UploadRequestSchema>;

/** Bytes of tags, lengths and numbers: five fields, each of a tag of one byte and a number of at most ten. */
const FIXED_MAX_BYTES = 55;
/** Bytes before a chunk's data: three tags with numbers of at most eight bytes, and a checksum. */
const HEAD_MAX_BYTES = 32;
const U32_MAX = 2 ** 32 - 1;
const I64_MAX: bigint = 2n ** 63n - 1n;
const U64_MAX: bigint = 2n ** 64n - 1n;

/** The bytes of the message as toBinary has them, behind `headBytes` free bytes; undefined for what that must judge. */
export function encodeReadFile(request: ReadFile, headBytes = 0): Buffer | undefined {
  const { root = "", path = "", offset = 0n, length = 0, whole = false } = request;
  const isPlain = isBetween(offset, 0n, U64_MAX) && isU32(length) && typeof whole === "boolean";
  if (!isPlain || !areTexts(root, path) || hasUnknownFields(request)) return undefined;
  const writer = new MessageWriter(headBytes, maxBytesOf(root, path));
  // Tags of proto/grove/v1/file_server.proto: field number times eight plus the wire type.
  writer.text(10, root);
  writer.text(18, path);
  writer.big(24, offset);
  writer.number(32, length);
  writer.number(40, whole ? 1 : 0);
  return writer.written();
}

/** The same for a small file with its bytes. */
export function encodeCreateFile(request: CreateFile, headBytes = 0): Buffer | undefined {
  const { root = "", path = "", data = NO_BYTES, mtimeMs = 0n, crc32 } = request;
  const isPlain = isBetween(mtimeMs, -I64_MAX - 1n, I64_MAX) && (crc32 === undefined || isU32(crc32));
  const isWhole = isPlain && data instanceof Uint8Array && areTexts(root, path);
  if (!isWhole || hasUnknownFields(request)) return undefined;
  const writer = new MessageWriter(headBytes, maxBytesOf(root, path) + data.length);
  writer.text(10, root);
  writer.text(18, path);
  writer.bytes(26, data);
  writer.big(32, mtimeMs);
  if (crc32 !== undefined) writer.told32(45, crc32);
  return writer.written();
}

/**
 * An upload's message with a chunk, up to and including the length of its data; undefined for what the general encoder
 * must judge.
 */
export const encodeChunkHead: HeadEncoder = (request, payloadBytes, headBytes) => {
  const { part } = request as Upload;
  if (part?.case !== "chunk" || hasUnknownFields(request as Upload)) return undefined;
  const { offset = 0n, crc32 } = part.value;
  const isPlain = isBetween(offset, 0n, EXACT_MAX) && (crc32 === undefined || isU32(crc32));
  if (!isPlain || payloadBytes === 0 || hasUnknownFields(part.value)) return undefined;
  const offsetBytes = offset === 0n ? 0 : 1 + varintBytes(Number(offset));
  const chunkBytes = offsetBytes + (crc32 === undefined ? 0 : 5) + 1 + varintBytes(payloadBytes);
  const writer = new MessageWriter(headBytes, HEAD_MAX_BYTES);
  writer.number(18, chunkBytes + payloadBytes);
  writer.big(8, offset);
  if (crc32 !== undefined) writer.told32(21, crc32);
  writer.number(26, payloadBytes);
  return writer.written();
};

/** Faster encoders for some requests, for clients. */
export const REQUEST_ENCODERS: ReadonlyMap<DescMessage, RequestEncoder> = new Map<
  DescMessage,
  RequestEncoder
>([
  [ReadFileRequestSchema, (request, headBytes) => encodeReadFile(request as ReadFile, headBytes)],
  [CreateFileRequestSchema, (request, headBytes) => encodeCreateFile(request as CreateFile, headBytes)],
]);

const NO_BYTES = new Uint8Array(0);

function areTexts(root: unknown, path: unknown): boolean {
  return typeof root === "string" && typeof path === "string";
}

function isU32(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= U32_MAX;
}

function isBetween(value: unknown, least: bigint, most: bigint): boolean {
  return typeof value === "bigint" && value >= least && value <= most;
}

/** True for a message that was received with fields of a later version. */
function hasUnknownFields(request: object): boolean {
  return "$unknown" in request;
}

/** Bytes that a number takes as a varint. */
function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}

function maxBytesOf(root: string, path: string): number {
  return BYTES_PER_CHARACTER * (root.length + path.length) + FIXED_MAX_BYTES;
}
