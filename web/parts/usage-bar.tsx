// A bar of usage with its percentage in words.
import type { ReactNode } from "react";
import { percentText } from "../words/number.ts";
import { fullness } from "../words/thresholds.ts";

/** One part of a bar, in percent of the whole. */
export interface BarPart {
  readonly percent: number;
  readonly color: string;
}

/** A bar of several parts, hidden from screen readers since a text beside it says the same. */
export function UsageBar({
  parts,
  percent,
}: {
  readonly parts?: readonly BarPart[];
  readonly percent: number | null;
}): ReactNode {
  const shown = parts ?? [{ percent: percent ?? 0, color: colorOf(percent) }];
  return (
    <>
      <span className="bar" aria-hidden="true">
        {shown.map(({ percent: width, color }, index) => (
          <span key={index} style={{ width: `${Math.min(100, Math.max(0, width))}%`, background: color }} />
        ))}
      </span>{" "}
      <span className="percent">{percentText(percent)}</span>
    </>
  );
}

function colorOf(percent: number | null): string {
  const level = fullness(percent);
  return level === "ok" ? "var(--grove-accent)" : `var(--grove-${level})`;
}
