// A chart over time: lines with gaps, named limits, and one cursor and range for all charts of a page.
import { useComputedColorScheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { axisText, clockText, formatMoment } from "../words/time.ts";
import { type ChartLimit, drawLimits, resolvedColor } from "./chart-limits.ts";
import { type TimeRange, useZoom } from "./chart-zoom.tsx";

/** One line of a chart. */
export interface ChartLine {
  readonly label: string;
  /** One value per time; null is a gap. */
  readonly values: readonly (number | null)[];
  /** A variable of the style sheet. */
  readonly color: string;
  readonly isDashed?: boolean;
}

const HEIGHT = 160;
/** Charts with this key share their cursor. */
const SYNC = "grove";
/** Width of a digit in the axes' font. */
const CHARACTER_PX = 7;
/** A shorter drag is a click. */
const DRAG_MIN_PX = 5;
/** Below this span the axis shows seconds. */
const SECONDS_BELOW = 240;
/** Up to this span a time of day suffices. */
const CLOCK_UP_TO = 4_000;

interface ChartProps {
  readonly title: string;
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly limits?: readonly ChartLimit[];
  readonly unit: string;
  /** The fixed upper end of y, as for percent. */
  readonly top?: number | undefined;
  readonly sentence: string;
}

/** Draws lines over unix seconds; y begins at zero. `sentence` is the text for screen readers. */
export function Chart({ title, times, lines, limits = [], unit, top, sentence }: ChartProps): ReactNode {
  const isEmpty = lines.every(({ values }) => values.every((value) => value === null));
  const place = usePlot({ times, lines, limits, unit, top, isEmpty });
  return (
    <figure className="chart-figure">
      <h3 className="chart-title">{title}</h3>
      {isEmpty ? null : <div ref={place} className="chart" aria-hidden="true" />}
      <figcaption className="quiet">{sentence}</figcaption>
    </figure>
  );
}

/** Keeps a plot in the element of the returned ref. */
function usePlot({
  times,
  lines,
  limits,
  unit,
  top,
  isEmpty,
}: Required<Omit<ChartProps, "title" | "sentence">> & {
  readonly isEmpty: boolean;
}): RefObject<HTMLDivElement | null> {
  const place = useRef<HTMLDivElement>(null);
  const [plot, setPlot] = useState<uPlot>();
  const scheme = useComputedColorScheme("light");
  const isForced = useMediaQuery("(forced-colors: active)", false, { getInitialValueInEffect: false });
  const { range, set } = useZoom();
  const shape = JSON.stringify([
    lines.map(({ label, color, isDashed }) => [label, color, isDashed]),
    limits,
    unit,
    top,
    scheme,
    isForced,
  ]);
  useEffect(() => {
    const box = place.current;
    if (box === null || isEmpty) return;
    const [series, drawn, yUnit, yTop] = JSON.parse(shape) as [
      [string, string, boolean | null][],
      ChartLimit[],
      string,
      number | null,
    ];
    const created = new uPlot(
      optionsOf(box, {
        series,
        limits: drawn,
        unit: yUnit,
        top: yTop ?? undefined,
        onZoom: set,
      }),
      [[]],
      box,
    );
    setPlot(created);
    const observer = new ResizeObserver(() => created.setSize({ width: box.clientWidth, height: HEIGHT }));
    observer.observe(box);
    return () => {
      observer.disconnect();
      setPlot(undefined);
      created.destroy();
    };
  }, [shape, isEmpty, set]);
  useEffect(() => {
    if (plot === undefined) return;
    const [low = 0, high = low + 1] = [times[0], times.at(-1)];
    const [min, max] = shownRange(range, low, high);
    plot.batch(() => {
      plot.setData([times as number[], ...lines.map(({ values }) => values as (number | null)[])], false);
      plot.setScale("x", { min, max });
    });
  }, [plot, times, lines, range]);
  return place;
}

interface Shape {
  readonly series: readonly (readonly [string, string, boolean | null])[];
  readonly limits: readonly ChartLimit[];
  readonly unit: string;
  readonly top: number | undefined;
  readonly onZoom: (range: TimeRange | undefined) => void;
}

function optionsOf(box: HTMLElement, { series, limits, unit, top, onZoom }: Shape): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (variable: string): string => resolvedColor(box, variable);
  const grid = { stroke: color("--grove-line"), width: 1 };
  const axis = { stroke: color("--grove-quiet"), grid, ticks: grid, font: `12px ${style.fontFamily}` };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    cursor: {
      sync: { key: SYNC },
      drag: { x: true, y: false, setScale: false },
      bind: {
        dblclick: () => () => {
          onZoom(undefined);
          return null;
        },
      },
    },
    legend: { live: true },
    scales: {
      x: { time: true, auto: false },
      y: { range: (_plot, _low, high) => [0, top ?? niceTop(Math.max(high ?? 0, 0))] },
    },
    // Half of the last time label extends to the right of its tick.
    padding: [null, 40, null, null],
    axes: [
      { ...axis, space: 96, size: 32, values: (_plot, splits) => timeTexts(splits) },
      { ...axis, size: widthOf, values: (_plot, splits) => splits.map((split) => `${split} ${unit}`) },
    ],
    series: [
      { value: (plot: uPlot, value: number | null) => (value === null ? "" : pointedText(plot, value)) },
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
    hooks: {
      draw: [(plot) => drawLimits(plot, box, limits)],
      // Shows the cursor's values only while there is a cursor.
      setCursor: [(plot) => plot.root.classList.toggle("is-pointed", (plot.cursor.left ?? -1) >= 0)],
      setSelect: [(plot) => zoomTo(plot, onZoom)],
    },
  };
}

/** Sets the dragged range for all charts of the page. */
function zoomTo(plot: uPlot, onZoom: (range: TimeRange | undefined) => void): void {
  const { left, width } = plot.select;
  if (width < DRAG_MIN_PX) return;
  const dragged: TimeRange = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  onZoom(dragged);
}

function shownRange(range: TimeRange | number | undefined, low: number, high: number): TimeRange {
  if (range === undefined) return [low, high];
  return typeof range === "number" ? [Math.max(low, high - range), high] : range;
}

/** Width of the axis's longest text. */
function widthOf(_plot: uPlot, texts: readonly string[] | null): number {
  return 20 + CHARACTER_PX * Math.max(6, ...(texts ?? []).map((text) => text.length));
}

/** The cursor's moment, with its day on charts beyond the last hours. */
function pointedText(plot: uPlot, value: number): string {
  const [times = []] = plot.data;
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
  return span > CLOCK_UP_TO ? formatMoment(value) : clockText(value, true);
}

function timeTexts(splits: readonly number[]): string[] {
  const span = (splits.at(-1) ?? 0) - (splits[0] ?? 0);
  return splits.map((split) => (span < SECONDS_BELOW ? clockText(split, true) : axisText(split, span)));
}

function niceTop(high: number): number {
  if (high <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(high));
  return ([1, 2, 5, 10].find((step) => step * unit >= high * 1.05) ?? 10) * unit;
}

function round(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Math.round(value * 100) / 100;
}
