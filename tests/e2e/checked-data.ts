// Checks a node's data at rest, as an operator does.
import assert from "node:assert/strict";
import { grove } from "./processes.ts";

/** What `grove fsck` counts, of which tests look at these. */
export interface CheckedData {
  readonly liveBytes: number;
  readonly chunkCount: number;
  readonly notes: readonly string[];
}

/** The report of a check that read every byte; fails the test on any difference. */
export async function checkData(data: string): Promise<CheckedData> {
  const { code, stdout, stderr } = await grove(["fsck", "-data", data, "-deep", "--json"]);
  const report = JSON.parse(stdout || "{}") as CheckedData & {
    readonly differences: readonly string[];
    readonly differenceCount: number;
  };
  assert.deepEqual([code, report.differenceCount, report.differences], [0, 0, []], stderr);
  return report;
}
