// Encodes the reply of ReadFile with one copy of its bytes, straight from the checked blocks.
import { BLOCK_BYTES } from "#base/limits.ts";
import type { FileContent } from "#storage/contract/file-content.ts";
import { encodeAttr } from "#wire/proto/attr-encoder.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";

/** Fields of ReadFileResponse by number (proto/grove/v1/file_server.proto). */
const DATA_FIELD = 1;
const ATTR_FIELD = 2;
const WIRE_BYTES = 2;

/**
 * The ReadFileResponse with bytes `offset` to `end`, after `headBytes` bytes of room; at once where they are
 * in memory. Throws CORRUPT.
 */
export function encodeRead(
  content: Pick<FileContent, "readBlock">,
  { offset, end }: { readonly offset: number; readonly end: number },
  attr: Attr,
  headBytes: number,
): Buffer | Promise<Buffer> {
  const dataBytes = Math.max(0, end - offset);
  const attrBytes = encodeAttr(attr);
  // An empty data field is left out, like every empty field.
  const dataHead = dataBytes === 0 ? [] : headOf(DATA_FIELD, dataBytes);
  const attrHead = headOf(ATTR_FIELD, attrBytes.length);
  const dataAt = headBytes + dataHead.length;
  const attrAt = dataAt + dataBytes;
  const reply = Buffer.allocUnsafe(attrAt + attrHead.length + attrBytes.length);
  reply.set(dataHead, headBytes);
  reply.set(attrHead, attrAt);
  reply.set(attrBytes, attrAt + attrHead.length);
  const read = readInto(reply.subarray(dataAt, attrAt), content, offset);
  return read === undefined ? reply : read.then(() => reply);
}

function readInto(
  target: Buffer,
  content: Pick<FileContent, "readBlock">,
  offset: number,
): Promise<void> | undefined {
  if (target.length === 0) return undefined;
  let shared: Buffer | undefined;
  const block =
    target.length > BLOCK_BYTES ? () => (shared ??= Buffer.allocUnsafeSlow(BLOCK_BYTES)) : undefined;
  const first = content.readBlock(offset, block);
  if (!(first instanceof Promise) && first.copy(target) === target.length) return undefined;
  return readOn(target, content, { offset, first, block });
}

async function readOn(
  target: Buffer,
  content: Pick<FileContent, "readBlock">,
  from: {
    readonly offset: number;
    readonly first: Buffer | Promise<Buffer>;
    readonly block: (() => Buffer) | undefined;
  },
): Promise<void> {
  let at = (await from.first).copy(target);
  while (at < target.length) at += (await content.readBlock(from.offset + at, from.block)).copy(target, at);
}

/** Tag and length of a field of bytes. */
function headOf(field: number, length: number): number[] {
  const head = [field * 8 + WIRE_BYTES];
  let left = length;
  for (; left > 127; left >>>= 7) head.push((left & 127) | 128);
  head.push(left);
  return head;
}
