// Messages in frames of one byte: the work and the memory that they cost grow with their bytes alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { frame } from "#wire/framing/frames.ts";
import { UploadRequestSchema } from "#wire/framing/gen/echo_pb.ts";
import { type Scan, type ScanPlace, SlicedField } from "#wire/framing/sliced-field.ts";
import { inbox } from "./sliced.fixture.ts";

/** An unknown field of two bytes: number 15, a varint of one byte. */
const UNKNOWN_FIELD = Buffer.from([15 * 8, 1]);

/** Counts the bytes that are looked at, and the buffers in which they lie. */
class CountingField extends SlicedField<typeof UploadRequestSchema> {
  lookedAt = 0;
  readonly buffers = new Set<ArrayBufferLike>();

  override scan(bytes: Uint8Array, bodyBytes: number, place: ScanPlace): Scan {
    this.buffers.add(bytes.buffer);
    const counted = new Proxy(bytes, {
      get: (target, name) => {
        this.lookedAt++;
        return Reflect.get(target, name, target) as unknown;
      },
    });
    return super.scan(counted, bodyBytes, place);
  }
}

/** The message of a chunk behind many unknown fields. */
function messageBehind(fields: number): Buffer {
  const chunk = { case: "chunk", value: { offset: 7n, data: Buffer.from("payload") } } as const;
  const body = toBinary(UploadRequestSchema, create(UploadRequestSchema, { part: chunk }));
  return frame(Buffer.concat([...Array.from({ length: fields }, () => UNKNOWN_FIELD), body]), false);
}

test("the beginning of a message in frames of one byte is looked at once, and joined in few buffers", async () => {
  for (const fields of [100, 1_000, 8_000]) {
    const field = new CountingField(UploadRequestSchema, "chunk.data");
    const { inbox: made } = inbox(field);
    const wire = messageBehind(fields);
    // A copy of each byte, as sockets give them.
    for (const byte of wire) made.push(Buffer.from([byte]));
    made.end();
    const first = await made.next();
    assert.equal(first?.payloadBytes, 7);
    const parts: Buffer[] = [];
    for (let slice = await first.payload.read(); slice !== null; slice = await first.payload.read()) {
      parts.push(slice);
    }
    assert.equal(Buffer.concat(parts).toString(), "payload");
    assert(field.lookedAt < wire.length * 4, `${field.lookedAt} looks at ${wire.length} bytes`);
    assert(field.buffers.size < 32, `${field.buffers.size} buffers`);
  }
});

test("a payload in frames of one byte pauses its stream long before it holds as many buffers", () => {
  const { inbox: made, pauses } = inbox();
  const value = { offset: 0n, data: new Uint8Array(100_000) };
  const message = create(UploadRequestSchema, { part: { case: "chunk", value } });
  const wire = frame(toBinary(UploadRequestSchema, message), false);
  made.push(wire.subarray(0, 64));
  for (let at = 64; at < 2_000; at++) made.push(wire.subarray(at, at + 1));
  assert.equal(pauses(), 1);
});
