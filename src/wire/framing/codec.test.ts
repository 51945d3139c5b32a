// Encoding and decoding of metadata, statuses and frames.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Deframer, frame, MessageBudget, WholeBodies } from "./frames.ts";
import { Metadata } from "./metadata.ts";
import { formatTimeout, parseTimeout } from "./request-headers.ts";
import {
  Code,
  decodeMessage,
  encodeMessage,
  StatusError,
  statusHeaders,
  statusOf,
  statusOfHttp,
} from "./status.ts";

test("any text survives as a status message, in printable ASCII on the wire", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const encoded = encodeMessage(text);
      assert.match(encoded, /^[\x20-\x7e]*$/);
      assert.equal(decodeMessage(encoded), Buffer.from(text, "utf8").toString("utf8"));
    }),
  );
  assert.equal(encodeMessage("50 % of é\n"), "50 %25 of %C3%A9%0A");
});

test("a status message that is not well encoded is read as far as it can be", () => {
  assert.equal(decodeMessage("100% of %zz and %4"), "100% of %zz and %4");
  assert.equal(decodeMessage("%FF"), "�");
});

test("a status with details and trailers comes back the same", () => {
  const error = new StatusError(Code.RESOURCE_EXHAUSTED, "voll %", {
    details: [{ typeUrl: "type.googleapis.com/a.B", value: new Uint8Array([1, 2, 255]) }],
    metadata: new Metadata({ "svc-reason": "QUOTA", "svc-raw-bin": new Uint8Array([0]) }),
  });
  const back = statusOf(statusHeaders(error));
  assert(back instanceof StatusError);
  assert.equal(back.code, error.code);
  assert.equal(back.message, error.message);
  assert.equal(back.details[0]?.typeUrl, "type.googleapis.com/a.B");
  assert.deepEqual([...(back.details[0]?.value ?? [])], [1, 2, 255]);
  assert.equal(back.metadata.get("svc-reason"), "QUOTA");
  assert.deepEqual([...(back.metadata.getBinary("svc-raw-bin") ?? [])], [0]);
});

test("headers without a status, with OK, with an unknown code and with broken details are told apart", () => {
  assert.equal(statusOf(["a", "b"]), undefined);
  assert.equal(statusOf(["grpc-status", "0"]), null);
  for (const code of ["17", "-1", "x", "", "005"])
    assert.equal(statusOf(["grpc-status", code])?.code, Code.UNKNOWN);
  const broken = statusOf(["grpc-status", "5", "grpc-message", "no", "grpc-status-details-bin", "AAAA"]);
  assert.deepEqual([broken?.code, broken?.message, broken?.details], [Code.NOT_FOUND, "no", []]);
  assert.equal(statusOfHttp(503).code, Code.UNAVAILABLE);
  assert.equal(statusOfHttp(404).code, Code.UNIMPLEMENTED);
  assert.equal(statusOfHttp(418).code, Code.UNKNOWN);
});

test("metadata refuses names and values that would break the protocol, and never quotes a value", () => {
  const metadata = new Metadata();
  for (const name of ["", "a b", "é", ":path", "grpc-status", "content-type", "te", "a:b"]) {
    assert.throws(() => metadata.set(name, "x"), TypeError, name);
  }
  for (const value of ["line\nbreak", "é", "\u0000", "tab\t"]) {
    assert.throws(
      () => metadata.set("x-token", value),
      (error) => error instanceof TypeError && !error.message.includes(value),
    );
  }
  assert.throws(() => metadata.set("x-bin", "text"), TypeError);
  assert.throws(() => metadata.set("x-text", new Uint8Array(1)), TypeError);
});

test("metadata is a multimap of lower-cased names", () => {
  const metadata = new Metadata({ "X-One": "1", many: ["a", "b"] });
  assert.equal(metadata.get("x-one"), "1");
  assert.deepEqual(metadata.getAll("MANY"), ["a", "b"]);
  const copy = new Metadata(metadata);
  copy.append("many", "c");
  copy.delete("x-one");
  assert.deepEqual(
    [...copy.entries()],
    [
      ["many", "a"],
      ["many", "b"],
      ["many", "c"],
    ],
  );
  assert.deepEqual(metadata.getAll("many"), ["a", "b"]);
});

test("binary metadata survives, padded or not, and what is not base64 is undefined", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const metadata = new Metadata({ "a-bin": bytes });
      assert.deepEqual([...(metadata.getBinary("a-bin") ?? [])], [...bytes]);
      const padded = Metadata.fromRaw(["a-bin", Buffer.from(bytes).toString("base64")]);
      assert.deepEqual([...(padded.getBinary("a-bin") ?? [])], [...bytes]);
    }),
  );
  assert.equal(Metadata.fromRaw(["a-bin", "***"]).getBinary("a-bin"), undefined);
  assert.deepEqual([...(Metadata.fromRaw(["a-bin", "AQ==,Ag=="]).getBinary("a-bin") ?? [])], [1]);
});

test("a deadline survives the wire, never shorter than it was", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 31 - 1 }), (ms) => {
      const back = parseTimeout(formatTimeout(ms)) as number;
      assert(back >= ms && back - ms < 1_000);
    }),
  );
  assert.equal(parseTimeout("1H"), 3_600_000);
  assert.equal(parseTimeout("99999999H"), 2 ** 31 - 1);
  assert.equal(parseTimeout("1n"), 1);
});

test("messages come out of a stream as they went in, wherever it is cut", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }),
      (bodies, cuts) => {
        const wire = Buffer.concat(bodies.map((body) => frame(body, body.length % 2 === 1)));
        const budget = new MessageBudget(1_000);
        const seen: [number[], boolean][] = [];
        const whole = new WholeBodies(budget, (body, compressed) => seen.push([[...body], compressed]));
        const deframer = new Deframer(whole, 1_000);
        for (let at = 0, i = 0; at < wire.length; i++) {
          const end = at + (cuts[i % cuts.length] as number);
          deframer.push(wire.subarray(at, end));
          at = end;
        }
        assert.deepEqual(
          seen,
          bodies.map((body) => [[...body], body.length % 2 === 1]),
        );
        assert.equal(deframer.isInsideMessage, false);
        assert.equal(budget.usedBytes, 0);
      },
    ),
  );
});

test("a large message counts against the budget while it is collected, and no longer", () => {
  const budget = new MessageBudget(200_000);
  const whole = new WholeBodies(budget, () => undefined);
  const deframer = new Deframer(whole, 1_000_000);
  const wire = frame(new Uint8Array(150_000), false);
  deframer.push(wire.subarray(0, 70_000));
  assert(budget.usedBytes >= 70_000 && budget.usedBytes <= 150_000);
  deframer.push(wire.subarray(70_000));
  assert.equal(budget.usedBytes, 0);
  const tooMuch = frame(new Uint8Array(250_000), false);
  assert.throws(
    () => {
      for (let at = 0; at < tooMuch.length; at += 10_000) deframer.push(tooMuch.subarray(at, at + 10_000));
    },
    { code: Code.RESOURCE_EXHAUSTED },
  );
  whole.release();
  assert.equal(budget.usedBytes, 0);
});
