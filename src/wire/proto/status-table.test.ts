// Every refusal has the status of decision D1, with its numbers in plain trailers for simple clients.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ERROR_CODES, type ErrorCode, GroveError } from "#base/errors.ts";
import { errorCodeOf, errorDetailsOf, grpcCodeOf, trailersOf } from "./status-table.ts";

test("D1's rows answer their gRPC codes", () => {
  const rows: readonly (readonly [ErrorCode, number])[] = [
    ["QUOTA_EXCEEDED", 8],
    ["SESSION_IDLE", 16],
    ["IP_MISMATCH", 7],
    ["NO_SUCH_PATH", 5],
    ["PATH_EXISTS", 6],
    ["NOT_EMPTY", 9],
    ["BAD_NAME", 3],
    ["OFFSET_MISMATCH", 10],
    ["CORRUPT", 15],
    ["IDP_UNAVAILABLE", 14],
    ["CLIENT_CERT_REQUIRED", 16],
    ["NODE_ID_HELD", 6],
    ["FENCED", 9],
    ["NOT_IMPLEMENTED", 12],
  ];
  for (const [code, grpc] of rows) assert.equal(grpcCodeOf(code), grpc, code);
});

test("no refusal answers OK, CANCELLED, UNKNOWN or DEADLINE_EXCEEDED, which say nothing about it", () => {
  for (const code of ERROR_CODES) assert.ok(![0, 1, 2, 4].includes(grpcCodeOf(code)), code);
});

test("a quota refusal carries reason and byte counts as ErrorInfo and as plain trailers (D1)", () => {
  const metadata = { used: "5", quota: "18446744073709551615", root_owner: "ä@example.com" };
  const error = new GroveError("QUOTA_EXCEEDED", "storage quota exceeded", { metadata });
  assert.deepEqual(errorDetailsOf(error), { reason: "QUOTA_EXCEEDED", domain: "grove", metadata });
  assert.deepEqual(trailersOf(error), {
    "svc-reason": "QUOTA_EXCEEDED",
    "svc-used-bytes": "5",
    "svc-quota-bytes": "18446744073709551615",
  });
});

test("a value that is no header text is left out of the trailers", () => {
  for (const address of ["", "a\r\nb", "ä:1", "x".repeat(257)]) {
    const error = new GroveError("WRONG_NODE", "elsewhere", { metadata: { address } });
    assert.deepEqual(trailersOf(error), { "svc-reason": "WRONG_NODE" });
  }
});

test("a reason is read back, and an unknown one is not taken for a known one", () => {
  assert.equal(errorCodeOf("FENCED"), "FENCED");
  for (const reason of [undefined, "", "fenced", "toString"]) assert.equal(errorCodeOf(reason), undefined);
});
