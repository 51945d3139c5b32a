// The form of /metrics that a request gets for its Accept header (RFC 9110 12.5.1, D12).
import assert from "node:assert/strict";
import { test } from "node:test";
import { preferredType } from "./accept.ts";

const OFFERS = ["application/json", "application/openmetrics-text", "text/plain"] as const;
const [JSON_TYPE, OPEN, TEXT] = OFFERS;

test("without a request, or with equal ones, it is the first offer (spec 4.4, D12)", () => {
  for (const accept of [
    undefined,
    "",
    " ",
    "*/*",
    "application/*",
    "application/json, text/plain",
    "text/plain, */*",
    "text/plain, application/json, application/*+json, */*",
    "text/html",
    "nonsense",
  ]) {
    assert.equal(preferredType(accept, OFFERS), JSON_TYPE, String(accept));
  }
});

test("the highest quality wins, and the most specific range gives it (RFC 9110 12.5.1)", () => {
  const cases: Record<string, string> = {
    "text/plain": TEXT,
    "Text/Plain; Version=0.0.4": TEXT,
    "text/*": TEXT,
    "text/plain;q=0.5, application/json;q=0.4": TEXT,
    "text/plain;q=0.5, application/json;q=0.5": JSON_TYPE,
    "application/json;q=0.5, text/plain;q=0.5": JSON_TYPE,
    "text/plain;q=0.5, */*;q=0.4": TEXT,
    "text/plain;q=0.4, */*;q=0.5": JSON_TYPE,
    "application/json;q=0, */*;q=0.1": OPEN,
    "application/json;q=0, application/*;q=0, */*": TEXT,
    "text/plain;q=1.001": JSON_TYPE,
    "text/plain;q=abc": JSON_TYPE,
    "text/plain;q=0": JSON_TYPE,
    "text/plain;q=0.001": TEXT,
    // Sent by Prometheus.
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2":
      OPEN,
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2": TEXT,
    // Sent by browsers.
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": JSON_TYPE,
  };
  for (const [accept, expected] of Object.entries(cases))
    assert.equal(preferredType(accept, OFFERS), expected, accept);
});

test("an endless header costs no more than its first 32 items", () => {
  assert.equal(preferredType(`${"a/b,".repeat(31)}text/plain`, OFFERS), TEXT);
  assert.equal(preferredType(`${"a/b,".repeat(32)}text/plain`, OFFERS), JSON_TYPE);
});
