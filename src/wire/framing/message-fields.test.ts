// The field counter finds the same fields as the decoder.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { EchoRequestSchema, EchoResponseSchema } from "./gen/echo_pb.ts";
import { hasMoreFieldsThan } from "./message-fields.ts";

const exactly = (desc: Parameters<typeof hasMoreFieldsThan>[0], bytes: Uint8Array): number => {
  let fields = 0;
  while (hasMoreFieldsThan(desc, bytes, fields)) fields++;
  return fields;
};

test("known, unknown, nested and listed fields all count, and text counts once however long it is", () => {
  const text = toBinary(EchoRequestSchema, create(EchoRequestSchema, { text: "x".repeat(5_000), count: 7 }));
  assert.equal(exactly(EchoRequestSchema, text), 2);
  const unknown = new BinaryWriter();
  for (let i = 0; i < 1_000; i++) unknown.tag(900, WireType.Varint).uint32(0);
  assert.equal(exactly(EchoRequestSchema, unknown.finish()), 1_000);
  const file = create(FileDescriptorProtoSchema, {
    name: "a",
    dependency: ["b", "c"],
    publicDependency: [0, 1, 300],
    messageType: [{ name: "M", field: [{ name: "f", number: 1 }, {}] }],
  });
  // name, 2 + 3 lists (not packed in proto2), message, its name, two fields, one of which has two of its own.
  assert.equal(exactly(FileDescriptorProtoSchema, toBinary(FileDescriptorProtoSchema, file)), 12);
  const map = toBinary(EchoResponseSchema, create(EchoResponseSchema, { metadata: { a: "1", b: "2" } }));
  assert.equal(exactly(EchoResponseSchema, map), 6);
});

test("groups and empty messages count one by one", () => {
  const groups = Buffer.alloc(2_000, Buffer.from([0x0b, 0x0c]));
  assert.equal(hasMoreFieldsThan(EchoRequestSchema, groups, 1_999), true);
  const empty = Buffer.alloc(2_000, Buffer.from([(4 << 3) | 2, 0]));
  assert.equal(hasMoreFieldsThan(FileDescriptorProtoSchema, empty, 999), true);
  assert.equal(hasMoreFieldsThan(FileDescriptorProtoSchema, empty, 1_000), false);
});

test("whatever the bytes are, counting ends and throws nothing", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(50), (bytes, max) => {
      hasMoreFieldsThan(FileDescriptorProtoSchema, bytes, max);
    }),
    { numRuns: 2_000 },
  );
});
