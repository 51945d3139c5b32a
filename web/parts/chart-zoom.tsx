// The common time range of a page's charts, chosen by a button or by dragging over a chart.
import { Button, SegmentedControl } from "@mantine/core";
import { createContext, type ReactNode, useContext, useMemo, useState } from "react";

/** Unix seconds, both ends. */
export type TimeRange = readonly [number, number];

interface Zoom {
  /** A dragged range, or a number of last seconds; undefined for all. */
  readonly range: TimeRange | number | undefined;
  readonly set: (range: TimeRange | number | undefined) => void;
}

const ZoomContext = createContext<Zoom>({ range: undefined, set: () => undefined });
const STRETCHES = [
  { value: "3600", label: "1 hour" },
  { value: "900", label: "15 min" },
  { value: "300", label: "5 min" },
];

/** The range of the charts below, and its setter. */
export function useZoom(): Zoom {
  return useContext(ZoomContext);
}

/** Charts with a common range and its choice above. Beyond the last hour only dragging sets it. */
export function ZoomGroup({
  label,
  isHour = true,
  children,
}: {
  readonly label: string;
  readonly isHour?: boolean;
  readonly children: ReactNode;
}): ReactNode {
  const [range, set] = useState<TimeRange | number>();
  const zoom = useMemo(() => ({ range, set }), [range]);
  const isDragged = typeof range === "object";
  return (
    <ZoomContext value={zoom}>
      <section aria-label={label}>
        <div className="filter-bar">
          {isHour ? (
            <SegmentedControl
              aria-label="How much of it is shown"
              size="xs"
              data={STRETCHES}
              // A dragged range is none of these.
              value={isDragged ? "" : String(range ?? 3_600)}
              onChange={(value) => set(value === "3600" ? undefined : Number(value))}
            />
          ) : null}
          {isDragged ? (
            <Button variant="default" size="compact-sm" onClick={() => set(undefined)}>
              {isHour ? "Show the whole hour" : "Show all of it"}
            </Button>
          ) : (
            <span className="quiet wide-only">Drag over a chart to look closer.</span>
          )}
        </div>
        <div className="chart-grid">{children}</div>
      </section>
    </ZoomContext>
  );
}
