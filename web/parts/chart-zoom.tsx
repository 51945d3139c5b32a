// The stretch of time that the charts of a page show: chosen by a button or by dragging over any of them, the same for all.
import { Button, SegmentedControl } from "@mantine/core";
import { createContext, type ReactNode, useContext, useMemo, useState } from "react";

/** Unix seconds, both ends. */
export type TimeRange = readonly [number, number];

interface Zoom {
  /** A stretch that was dragged, or so many of the last seconds; undefined for all there is. */
  readonly range: TimeRange | number | undefined;
  readonly set: (range: TimeRange | number | undefined) => void;
}

const ZoomContext = createContext<Zoom>({ range: undefined, set: () => undefined });
const STRETCHES = [
  { value: "3600", label: "1 hour" },
  { value: "900", label: "15 min" },
  { value: "300", label: "5 min" },
];

/** What charts below show, and how to show something else. */
export function useZoom(): Zoom {
  return useContext(ZoomContext);
}

/** Charts with a common stretch of time; the choice stands above them. Of another time than the last hour only a drag chooses. */
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
              // A stretch that was dragged is none of these.
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
