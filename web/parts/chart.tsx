// A chart over time: one or a few lines, gaps left open, limits drawn and named, one cursor over all charts of a page.
import { useComputedColorScheme } from "@mantine/core";
import { type ReactNode, useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

/** One line of a chart. */
export interface ChartLine {
  readonly label: string;
  /** As many as there are times; null is a gap. */
  readonly values: readonly (number | null)[];
  /** A variable of the style sheet. */
  readonly color: string;
  readonly isDashed?: boolean;
}

/** A line that must not be crossed. */
export interface ChartLimit {
  readonly label: string;
  readonly value: number;
}

const HEIGHT = 160;
/** All charts with this key move their cursors together. */
const SYNC = "grove";

/** Draws lines over unix seconds; y begins at zero. `sentence` says the same in words, for whoever cannot see it. */
export function Chart({
  title,
  times,
  lines,
  limits = [],
  unit,
  top,
  sentence,
}: {
  readonly title: string;
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly limits?: readonly ChartLimit[];
  readonly unit: string;
  /** The upper end of y where it is fixed, as with percent. */
  readonly top?: number;
  readonly sentence: string;
}): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const [plot, setPlot] = useState<uPlot>();
  const scheme = useComputedColorScheme("light");
  const shape = JSON.stringify([
    lines.map(({ label, color, isDashed }) => [label, color, isDashed]),
    limits,
    unit,
    top,
    scheme,
  ]);
  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const [series, drawn, yUnit, yTop] = JSON.parse(shape) as [
      [string, string, boolean | null][],
      ChartLimit[],
      string,
      number | null,
    ];
    const created = new uPlot(
      optionsOf(box, { series, limits: drawn, unit: yUnit, top: yTop ?? undefined }),
      [[]],
      box,
    );
    setPlot(created);
    const observer = new ResizeObserver(() => created.setSize({ width: box.clientWidth, height: HEIGHT }));
    observer.observe(box);
    return () => {
      observer.disconnect();
      created.destroy();
    };
  }, [shape]);
  useEffect(() => {
    plot?.setData([times as number[], ...lines.map(({ values }) => values as (number | null)[])]);
  }, [plot, times, lines]);
  return (
    <figure style={{ margin: "0 0 20px" }}>
      <h3 className="chart-title">{title}</h3>
      <div ref={place} className="chart" aria-hidden="true" />
      <figcaption className="quiet">{sentence}</figcaption>
    </figure>
  );
}

interface Shape {
  readonly series: readonly (readonly [string, string, boolean | null])[];
  readonly limits: readonly ChartLimit[];
  readonly unit: string;
  readonly top: number | undefined;
}

function optionsOf(box: HTMLElement, { series, limits, unit, top }: Shape): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (variable: string): string => resolved(box, variable);
  const grid = { stroke: color("--grove-line"), width: 1 };
  const axis = { stroke: color("--grove-quiet"), grid, ticks: grid, font: `12px ${style.fontFamily}` };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    cursor: { sync: { key: SYNC }, drag: { x: true, y: false } },
    legend: { live: true },
    scales: {
      x: { time: true },
      y: { range: (_plot, _low, high) => [0, top ?? niceTop(Math.max(high ?? 0, 0))] },
    },
    axes: [axis, { ...axis, size: 64, values: (_plot, splits) => splits.map((split) => `${split} ${unit}`) }],
    series: [
      {},
      ...series.map(([label, variable, isDashed]) => ({
        label,
        stroke: color(variable),
        width: 1.5,
        spanGaps: false,
        ...(isDashed === true ? { dash: [4, 4] } : {}),
        points: { show: false },
        value: (_plot: uPlot, value: number | null) => (value === null ? "–" : `${round(value)} ${unit}`),
      })),
    ],
    hooks: { draw: [(plot) => drawLimits(plot, limits, color)] },
  };
}

function drawLimits(plot: uPlot, limits: readonly ChartLimit[], color: (variable: string) => string): void {
  const { ctx, bbox } = plot;
  for (const { label, value } of limits) {
    const y = plot.valToPos(value, "y", true);
    if (y < bbox.top || y > bbox.top + bbox.height) continue;
    ctx.save();
    ctx.strokeStyle = color("--grove-critical");
    ctx.fillStyle = color("--grove-critical");
    ctx.setLineDash([2, 4]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.textAlign = "left";
    ctx.fillText(label, bbox.left + 6, y - 4);
    ctx.restore();
  }
}

/** A canvas knows no variables, and light-dark() only resolves on an element. */
function resolved(box: HTMLElement, variable: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${variable})`;
  box.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function niceTop(high: number): number {
  if (high <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(high));
  return ([1, 2, 5, 10].find((step) => step * unit >= high * 1.05) ?? 10) * unit;
}

function round(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Math.round(value * 100) / 100;
}
