// The question why the cluster was slow yesterday at two.
import assert from "node:assert/strict";
import type { HistoryReply } from "#wire/webapi/performance.ts";
import type { Job } from "./job.ts";

const DAY_SECONDS = 86_400;

/** Kept history is shown; for missing history the answer says so, without another hour's figures. */
export const slowYesterday: Job = {
  title: "a question about yesterday is answered with yesterday, and where nothing is kept that is said",
  async run(site) {
    const now = Math.floor(Date.now() / 1_000);
    const from = now - DAY_SECONDS;
    for (const whose of ["n1", "cluster"]) {
      const path = `/api/history/${whose}?from=${from}&to=${from + 3_600}`;
      const { points, interval_seconds: interval, kept_from: kept } = await site.ask<HistoryReply>(path);
      assert.ok(interval >= 60, `${whose}: points of ${interval} s`);
      // Rows of nulls are gaps, without figures of another hour.
      assert.ok(
        points.every(([, ...values]) => values.every((value) => value === null)),
        whose,
      );
      assert.ok(kept === null || (kept ?? 0) > from + 3_600, `${whose}: kept from ${kept}`);
    }
  },
};
