// Tests of the shared engine's figures: null and no series on a node with disks of its own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { engineFamilies, engineFields } from "./engine-metrics.ts";
import { familyText } from "./prometheus-form.ts";

const textOf = (fields: Parameters<typeof engineFamilies>[0]): string =>
  engineFamilies(fields)
    .map((family) => familyText(family, "text"))
    .join("");

test("a node on the engine shows its lease, roots and retries, and one with its own disks shows nulls", () => {
  const own = engineFields(undefined);
  assert.deepEqual([...new Set(Object.values(own))], [null]);
  assert.equal(textOf(own), "");
  const shared = engineFields({
    leaseAgeMs: 1_500,
    roots: 3,
    cachedRows: 70,
    takenOverTotal: 2,
    storeRetriesTotal: 1,
  });
  assert.deepEqual(
    [shared.engine_lease_age_ms, shared.engine_roots, shared.engine_rows_cached],
    [1_500, 3, 70],
  );
  const text = textOf(shared);
  assert.match(text, /^svc_engine_lease_age_seconds 1\.5$/m);
  assert.match(text, /^svc_engine_taken_over_total 2$/m);
  assert.match(text, /^# TYPE svc_engine_store_retries_total counter$/m);
});
