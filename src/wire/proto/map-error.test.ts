// The answer of both servers to a refusal: status, reason in details and trailers, and retry delay (D1).
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { GroveError } from "#base/errors.ts";
import { ErrorInfoSchema, RetryInfoSchema } from "#wire/framing/gen/google/rpc/error_details_pb.ts";
import { Code } from "#wire/framing/status.ts";
import { mapError } from "./map-error.ts";

test("a refusal is a status with its reason in details and trailers; what is none keeps its text for the log (D1)", () => {
  const status = mapError(new GroveError("WRONG_NODE", "elsewhere", { metadata: { address: "n2:50051" } }));
  assert.ok(status !== undefined);
  assert.equal(status.code, Code.FAILED_PRECONDITION);
  assert.equal(status.message, "elsewhere");
  assert.equal(status.metadata.get("svc-address"), "n2:50051");
  assert.deepEqual(
    status.details.map(({ typeUrl }) => typeUrl),
    ["type.googleapis.com/google.rpc.ErrorInfo"],
  );
  const info = fromBinary(ErrorInfoSchema, status.details[0]?.value ?? new Uint8Array());
  assert.deepEqual(
    [info.reason, info.domain, info.metadata],
    ["WRONG_NODE", "grove", { address: "n2:50051" }],
  );
  assert.equal(mapError(new Error("a secret")), undefined);
});

test("a refusal that says when to come again carries a RetryInfo, to the millisecond and below (D1)", () => {
  for (const [text, seconds, nanos] of [
    ["1500", 1n, 500_000_000],
    ["1", 0n, 1_000_000],
    ["0.5", 0n, 500_000],
  ] as const) {
    const status = mapError(new GroveError("RATE_LIMITED", "slower", { metadata: { retry_after_ms: text } }));
    const retry = fromBinary(RetryInfoSchema, status?.details[1]?.value ?? new Uint8Array());
    assert.deepEqual([retry.retryDelay?.seconds, retry.retryDelay?.nanos], [seconds, nanos], text);
  }
  for (const text of ["0", "-1", "soon"]) {
    const status = mapError(new GroveError("RATE_LIMITED", "slower", { metadata: { retry_after_ms: text } }));
    assert.equal(status?.details.length, 1, text);
  }
});
