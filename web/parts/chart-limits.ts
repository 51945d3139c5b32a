// Limit lines of a chart with names, which are kept from overlapping.
import type uPlot from "uplot";

/** A limit line. */
export interface ChartLimit {
  readonly label: string;
  readonly value: number;
  readonly severity: "warning" | "critical";
}

const TEXT_PX = 11;
const GAP_PX = 3;

/** Draws them over the plot, with names at its right end. */
export function drawLimits(plot: uPlot, box: HTMLElement, limits: readonly ChartLimit[]): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const lines = limits
    .map((limit) => ({ ...limit, y: plot.valToPos(limit.value, "y", true) }))
    .filter(({ y }) => y >= bbox.top && y <= bbox.top + bbox.height)
    .sort((a, b) => a.y - b.y);
  const font = `${TEXT_PX * ratio}px ${getComputedStyle(box).fontFamily}`;
  let freeFrom = bbox.top - (TEXT_PX + GAP_PX) * ratio;
  for (const { label, severity, y } of lines) {
    ctx.save();
    const color = resolvedColor(box, `--grove-${severity}`);
    ctx.strokeStyle = color;
    ctx.setLineDash([2 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    // Above its line if there is room, else below.
    const height = (TEXT_PX + GAP_PX) * ratio;
    const isAbove = y - height >= freeFrom;
    const bottom = isAbove ? y - GAP_PX * ratio : y + height;
    freeFrom = isAbove ? y : bottom;
    ctx.font = font;
    ctx.textAlign = "right";
    ctx.textBaseline = "bottom";
    ctx.fillStyle = color;
    ctx.fillText(label, bbox.left + bbox.width - GAP_PX * ratio, bottom);
    ctx.restore();
  }
}

/** A canvas resolves no variables, and light-dark() needs an element. */
export function resolvedColor(box: HTMLElement, variable: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${variable})`;
  box.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
