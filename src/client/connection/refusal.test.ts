// Tests that a refusal arrives with its code and numbers, from details and plain trailers (decision D1).
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { isGroveError } from "#base/errors.ts";
import { isClientError } from "#client/terminal/client-error.ts";
import { exitCodeOf } from "#client/terminal/exit-codes.ts";
import { ErrorInfoSchema } from "#wire/framing/gen/google/rpc/error_details_pb.ts";
import { Metadata } from "#wire/framing/metadata.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { errorJson, explain } from "./error-text.ts";
import { refusalOf } from "./refusal.ts";

const details = (
  reason: string,
  metadata: Record<string, string>,
): { typeUrl: string; value: Uint8Array }[] => [
  {
    typeUrl: "type.googleapis.com/google.rpc.ErrorInfo",
    value: toBinary(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain: "grove", metadata })),
  },
];

test("code and numbers come from the details (D1)", async () => {
  const error = new StatusError(Code.RESOURCE_EXHAUSTED, "storage quota exceeded", {
    details: details("QUOTA_EXCEEDED", { quota: "10", used: "9" }),
  });
  const refusal = await refusalOf(error, "n1");
  assert.ok(isGroveError(refusal, "QUOTA_EXCEEDED"));
  assert.deepEqual(refusal.metadata, { quota: "10", used: "9" });
  assert.equal(refusal.message, "storage quota exceeded");
});

test("and from the trailers, where there are no details or broken ones (D1)", async () => {
  const metadata = new Metadata({ "svc-reason": "WRONG_NODE", "svc-address": "n2:50051" });
  const broken = [{ typeUrl: "x/google.rpc.ErrorInfo", value: new Uint8Array([255, 255]) }];
  for (const options of [{ metadata }, { metadata, details: broken }]) {
    const refusal = await refusalOf(new StatusError(Code.FAILED_PRECONDITION, "elsewhere", options), "n1");
    assert.ok(isGroveError(refusal, "WRONG_NODE"));
    assert.equal(refusal.metadata["address"], "n2:50051");
  }
});

test("a message above the limit is never read as quota (D1)", async () => {
  const refusal = await refusalOf(new StatusError(Code.RESOURCE_EXHAUSTED, "message too large"), "n1");
  assert.ok(isClientError(refusal, "SERVER_LIMIT"));
  const { what, todo } = explain(refusal);
  assert.match(what, /message too large/);
  assert.match(todo, /no quota/);
  assert.equal(errorJson(refusal).error.reason, null);
  assert.equal(exitCodeOf(refusal), 1);
});

test("without a reason the status decides the exit code (D24)", async () => {
  const codes = {
    UNAVAILABLE: 7,
    DEADLINE_EXCEEDED: 7,
    UNAUTHENTICATED: 2,
    PERMISSION_DENIED: 4,
    NOT_FOUND: 3,
    INTERNAL: 1,
  } as const;
  for (const [name, exit] of Object.entries(codes)) {
    const refusal = await refusalOf(new StatusError(Code[name as keyof typeof codes], "x"), "n1");
    assert.equal(exitCodeOf(refusal), exit, name);
  }
});

test("a reason that this version does not know is treated by its status", async () => {
  const metadata = new Metadata({ "svc-reason": "SOMETHING_NEW" });
  assert.equal(
    exitCodeOf(await refusalOf(new StatusError(Code.UNAUTHENTICATED, "x", { metadata }), "n1")),
    2,
  );
});
