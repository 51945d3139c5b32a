// The grades of spec 3.2 at both sides of every threshold.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { gradeOf } from "./node-status.ts";

const EDGES = [
  ["online", "warning", 80, 65],
  ["warning", "degraded", 90, 75],
  ["degraded", "critical", 95, 85],
] as const;

for (const [below, above, disk, temperature] of EDGES) {
  test(`a disk at ${disk} % is still ${below}, above it ${above} (spec 3.2, D24)`, () => {
    assert.equal(gradeOf({ diskUsagePercent: disk, cpuTempCelsius: null }), below);
    assert.equal(gradeOf({ diskUsagePercent: disk + 0.01, cpuTempCelsius: null }), above);
  });

  test(`a processor at ${temperature} °C is still ${below}, above it ${above} (spec 3.2, D24)`, () => {
    assert.equal(gradeOf({ diskUsagePercent: null, cpuTempCelsius: temperature }), below);
    assert.equal(gradeOf({ diskUsagePercent: null, cpuTempCelsius: temperature + 0.1 }), above);
  });
}

test("what is not known exceeds nothing (D12)", () => {
  assert.equal(gradeOf({ diskUsagePercent: null, cpuTempCelsius: null }), "online");
});

test("the worse of the two values decides, whichever it is (spec 3.2)", () => {
  const order = ["online", "warning", "degraded", "critical"];
  const percent = fc.option(fc.double({ min: 0, max: 100, noNaN: true }));
  const celsius = fc.option(fc.double({ min: -40, max: 150, noNaN: true }));
  fc.assert(
    fc.property(percent, celsius, (diskUsagePercent, cpuTempCelsius) => {
      const both = order.indexOf(gradeOf({ diskUsagePercent, cpuTempCelsius }));
      const disk = order.indexOf(gradeOf({ diskUsagePercent, cpuTempCelsius: null }));
      const heat = order.indexOf(gradeOf({ diskUsagePercent: null, cpuTempCelsius }));
      assert.equal(both, Math.max(disk, heat));
    }),
  );
});
