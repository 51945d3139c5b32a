// The fast decoder of listings agrees with the general one on any bytes.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  equals,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import fc from "fast-check";
import { AttrSchema } from "./gen/grove/v1/common_pb.ts";
import { ListDirResponseSchema, ReadFileResponseSchema } from "./gen/grove/v1/file_server_pb.ts";
import { decodeAttr, decodeListing, decodeReadFile } from "./listing-decoder.ts";

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string(),
  fc.constantFrom("", "alice@example.com", "é"),
);
const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const i64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const attr: fc.Arbitrary<MessageInitShape<typeof AttrSchema>> = fc.record({
  id: text,
  name: text,
  path: text,
  kind: fc.constantFrom(0, 1, 2),
  size: fc.oneof(u64, fc.bigInt({ min: 0n, max: 2n ** 50n })),
  mtimeMs: i64,
  ctimeMs: fc.oneof(i64, fc.constant(1_790_000_000_000n)),
  owner: text,
  shared: fc.array(text, { maxLength: 3 }),
  etag: text,
  crc32: fc.nat({ max: 2 ** 32 - 1 }),
  childCount: u64,
  root: text,
  parentId: text,
  createdBy: text,
  myPermissions: fc.array(fc.constantFrom(0, 1, 2, 3), { maxLength: 4 }),
  damaged: fc.boolean(),
});
const page = fc.record({ entries: fc.array(attr, { maxLength: 8 }), nextPageToken: text });

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const generalOrError = (body: Buffer) => {
  try {
    const { nextPageToken, entries } = fromBinary(ListDirResponseSchema, body);
    return create(ListDirResponseSchema, { nextPageToken, entries });
  } catch {
    return undefined;
  }
};

const fastOrError = (body: Buffer) => {
  try {
    const { nextPageToken, entries } = decodeListing(body);
    return create(ListDirResponseSchema, { nextPageToken, entries: [...entries()] });
  } catch {
    return undefined;
  }
};

test("a page decodes to what the general decoder makes of it (D13)", () => {
  fc.assert(
    fc.property(page, (init) => {
      const body = bufferOf(toBinary(ListDirResponseSchema, create(ListDirResponseSchema, init)));
      const general = fromBinary(ListDirResponseSchema, body);
      const { nextPageToken, entries } = decodeListing(body);
      assert.equal(nextPageToken, general.nextPageToken);
      assert.equal(entries().length, general.entries.length);
      for (const [index, entry] of entries().entries()) {
        const expected = general.entries[index];
        assert.ok(expected !== undefined && equals(AttrSchema, entry, expected));
      }
    }),
  );
});

test("a damaged page is refused, or read exactly as the general decoder reads it", () => {
  fc.assert(
    fc.property(page, fc.nat(), fc.nat({ max: 255 }), fc.boolean(), (init, place, byte, cut) => {
      const whole = bufferOf(toBinary(ListDirResponseSchema, create(ListDirResponseSchema, init)));
      const at = whole.length === 0 ? 0 : place % whole.length;
      const body = cut ? whole.subarray(0, at) : Buffer.from(whole);
      if (!cut && body.length > 0) body[at] = byte;
      const general = generalOrError(body);
      const fast = fastOrError(body);
      // The general decoder lets a field reach beyond its entry's end; the fast one need not.
      if (fast === undefined) return;
      assert.ok(general !== undefined);
      assert.deepEqual(toBinary(ListDirResponseSchema, fast), toBinary(ListDirResponseSchema, general));
    }),
    { numRuns: 2_000 },
  );
});

test("fields may come in any order, as every decoder allows", () => {
  const entries = toBinary(
    ListDirResponseSchema,
    create(ListDirResponseSchema, { entries: [{ name: "a" }, { name: "b" }] }),
  );
  const token = toBinary(ListDirResponseSchema, create(ListDirResponseSchema, { nextPageToken: "t" }));
  const listing = decodeListing(Buffer.concat([token, entries]));
  assert.equal(listing.nextPageToken, "t");
  assert.deepEqual(
    listing.entries().map(({ name }) => name),
    ["a", "b"],
  );
});

test("entries are decoded once, and only when they are asked for", () => {
  const bytes = toBinary(ListDirResponseSchema, create(ListDirResponseSchema, { entries: [{ name: "a" }] }));
  const body = bufferOf(bytes);
  const listing = decodeListing(body);
  const first = listing.entries();
  assert.equal(first[0]?.name, "a");
  assert.equal(listing.entries(), first);
});

/** The bytes of messages, such bytes with one changed or some missing, and any others. */
const anyBytes = (bytes: fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> => {
  const broken = fc.tuple(bytes, fc.nat(), fc.nat({ max: 255 })).map(([body, at, byte]) => {
    const changed = Buffer.from(body);
    if (changed.length > 0) changed[at % changed.length] = byte;
    return changed.subarray(0, changed.length - (at % 3));
  });
  return fc.oneof(bytes, broken, fc.uint8Array().map(bufferOf));
};

const orError = <T>(decode: () => T): T | undefined => {
  try {
    return decode();
  } catch {
    return undefined;
  }
};

test("one Attr decodes to what the general decoder makes of it, of whatever bytes it is given (D13)", () => {
  const bytes = attr.map((init) => bufferOf(toBinary(AttrSchema, create(AttrSchema, init))));
  fc.assert(
    fc.property(anyBytes(bytes), (body) => {
      assert.deepEqual(
        orError(() => decodeAttr(body)),
        orError(() => fromBinary(AttrSchema, body)),
      );
    }),
    { numRuns: 2_000 },
  );
});

test("a file's bytes and Attr decode to what the general decoder makes of them, of whatever bytes it is given", () => {
  const part = fc.record(
    { data: fc.uint8Array({ maxLength: 300 }), attr: attr.map((init) => create(AttrSchema, init)) },
    { requiredKeys: [] },
  );
  // Parts of a message may follow one another: a later one replaces bytes, and adds to an Attr.
  const bytes = fc
    .array(part, { minLength: 1, maxLength: 2 })
    .map((parts) =>
      Buffer.concat(
        parts.map((init) => toBinary(ReadFileResponseSchema, create(ReadFileResponseSchema, init))),
      ),
    );
  const seen = (decode: () => MessageShape<typeof ReadFileResponseSchema>) => {
    const decoded = orError(decode);
    return decoded && { data: [...decoded.data], attr: decoded.attr };
  };
  fc.assert(
    fc.property(anyBytes(bytes), (body) => {
      const fast = seen(() => decodeReadFile(body));
      const general = seen(() => fromBinary(ReadFileResponseSchema, body));
      // The general decoder lets a field reach beyond its entry's end; the fast one need not.
      if (fast !== undefined) assert.deepEqual(fast, general);
    }),
    { numRuns: 2_000 },
  );
});
