// The metrics port of a gRPC port.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroveError } from "./errors.ts";
import { checkedMetricsPortOf, metricsPortOf } from "./metrics-port.ts";

test("the metrics port is the gRPC port minus 41000, and a port that leaves none is refused with the reason (spec 4.4, T6)", () => {
  for (const portOf of [metricsPortOf, checkedMetricsPortOf]) {
    assert.equal(portOf(50_051), 9_051);
    assert.equal(portOf(41_001), 1);
  }
  assert.equal(metricsPortOf(41_000), 0);
  for (const port of [1, 8_080, 41_000]) {
    assert.throws(
      () => checkedMetricsPortOf(port),
      (error) => isGroveError(error, "BAD_ARGUMENT") && /41000/.test(error.message),
    );
  }
});
