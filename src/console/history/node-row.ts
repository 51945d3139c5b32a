// Makes a row of the last hour from a node's answer and its rates.

import { RING_COLUMNS, rounded } from "./columns.ts";
import type { ErrorWindow, NodeRates, NodeSample } from "./node-sample.ts";

/** The row of one answer, in the order of RING_COLUMNS; NaN is null. The array is reused by the next call. */
export function rowOf(sample: NodeSample, rates: NodeRates, window: ErrorWindow): Readonly<Float64Array> {
  const figures = [
    rates.writeMbps,
    rates.readMbps,
    rates.writeIops,
    rates.readIops,
    rates.errorRatePct,
    sample.diskUsagePercent,
    sample.cpuTempCelsius,
    sample.cpuUsagePercent,
    sample.memUsagePercent,
    sample.activeConnections,
    sample.writeMsP50,
    sample.writeMsP95,
    sample.writeMsP99,
    sample.readMsP50,
    sample.readMsP95,
    sample.readMsP99,
    window.ops,
  ];
  RING_COLUMNS.forEach(({ decimals }, column) => {
    ROW[column] = rounded(figures[column] ?? Number.NaN, decimals);
  });
  return ROW;
}

const ROW = new Float64Array(RING_COLUMNS.length);
