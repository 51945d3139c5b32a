// Charts of the long-term history, with its begin.
import type { ReactNode } from "react";
import type { HistoryReply } from "#wire/webapi/performance.ts";
import { columnOf, linesOf, type PlannedLine } from "../live/history.ts";
import { useLongHistory, useSpan } from "../live/long-history.ts";
import { longHistoryText } from "../words/long-history.ts";
import { highestOf } from "../words/summary.ts";
import { Chart } from "./chart.tsx";
import { ZoomGroup } from "./chart-zoom.tsx";
import { Nothing, Unread } from "./page-state.tsx";

/** A chart's plan: column, label, colour and dashes of each line. */
export interface ChartPlan {
  readonly title: string;
  readonly unit: string;
  readonly top?: number | undefined;
  readonly lines: readonly PlannedLine[];
}

/** The charts of a node, or of "cluster", over the address's span. */
export function LongHistoryCharts({
  id,
  plans,
}: {
  readonly id: string;
  readonly plans: readonly ChartPlan[];
}): ReactNode {
  const { history, error } = useLongHistory(id, useSpan());
  if (history === undefined) return <Unread what="what is kept of this time" error={error} />;
  const isEmpty = history.points.every((point) => point.slice(1).every((figure) => figure === null));
  const sentence = longHistoryText(history, isEmpty);
  if (isEmpty) return <Nothing>{sentence}</Nothing>;
  return (
    <>
      <p className="quiet">
        {sentence}{" "}
        <a
          href={`/api/performance/export?node_id=${encodeURIComponent(id)}&from=${history.from}&to=${history.to}`}
          download
        >
          The same as CSV
        </a>
      </p>
      <ZoomGroup label="The chosen time" isHour={false}>
        {plans.map((plan) => (
          <LongHistoryChart key={plan.title} plan={plan} history={history} />
        ))}
      </ZoomGroup>
    </>
  );
}

function LongHistoryChart({
  plan,
  history,
}: {
  readonly plan: ChartPlan;
  readonly history: HistoryReply;
}): ReactNode {
  const times = columnOf(history, "ts").map((time) => time ?? 0);
  const lines = linesOf(plan.lines, history);
  const sentences = lines.map(({ label, values }, index) =>
    highestOf(index === 0 ? label : label.toLowerCase(), times, values, plan.unit),
  );
  return (
    <Chart
      title={plan.title}
      unit={plan.unit}
      times={times}
      lines={lines}
      sentence={`${sentences.join("; ")}.`}
      {...(plan.top === undefined ? {} : { top: plan.top })}
    />
  );
}
