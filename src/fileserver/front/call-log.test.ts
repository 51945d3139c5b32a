// Tests of the log lines for failed and refused calls: floods are sampled and counted, others always logged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { type LogFields, type Logger, silentLogger } from "#base/log.ts";
import { outcomeOf } from "#fileserver/operations/operation-outcome.ts";
import type { CallContext } from "#wire/grpc/handler.ts";
import { callLog } from "./call-log.ts";

function logged() {
  const clock = new ManualClock();
  const lines: (readonly [string, LogFields[string], LogFields[string]])[] = [];
  const log: Logger = {
    ...silentLogger,
    warn: (event, fields) => lines.push([event, fields?.["reason"], fields?.["left_out"]]),
  };
  const { interceptor } = callLog({
    log,
    meter: { callDone: () => undefined, callFailed: () => undefined },
    clock,
    peers: { of: () => undefined },
    audit: () => undefined,
  });
  const context = { method: { name: "WriteFile" }, peer: { address: "::1" } } as unknown as CallContext;
  const refuse = (code: ErrorCode): void => {
    const next = (): never => {
      throw new GroveError(code, "no");
    };
    assert.throws(() => interceptor(context, next), { code });
  };
  return { clock, lines, refuse };
}

test("of refusals for load ten lines a minute are written of each reason, and the next says how many were left out (D17)", () => {
  const { clock, lines, refuse } = logged();
  for (let count = 0; count < 1_000; count++) refuse("OVERLOADED");
  refuse("RATE_LIMITED");
  clock.advance(60_000);
  refuse("OVERLOADED");
  const ofLoad = Array.from({ length: 10 }, () => ["call_refused_for_load", "OVERLOADED", undefined]);
  assert.deepEqual(lines, [
    ...ofLoad,
    ["call_refused_for_load", "RATE_LIMITED", undefined],
    ["call_refused_for_load", "OVERLOADED", 990],
  ]);
});

test("failures of the node are told", () => {
  const { lines, refuse } = logged();
  for (let count = 0; count < 3; count++) refuse("STORAGE_FAILED");
  assert.deepEqual(
    lines,
    Array.from({ length: 3 }, () => ["call_failed", "STORAGE_FAILED", undefined]),
  );
});

test("a refusal for load is no failure of the node, so that nobody raises its error rate by asking for too much (T4)", () => {
  assert.equal(outcomeOf(new GroveError("OVERLOADED", "no")), "refused");
  assert.equal(outcomeOf(new GroveError("RATE_LIMITED", "no")), "refused");
  assert.equal(outcomeOf(new GroveError("STORE_UNAVAILABLE", "no")), "failed");
});
