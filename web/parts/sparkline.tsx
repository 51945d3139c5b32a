// A small line of recent values without axes, beside the last one as text.
import type { ReactNode } from "react";

const WIDTH = 96;
const HEIGHT = 24;

/** Draws values from left to right, y from zero to the largest, constants at half height; null is a gap. */
export function Sparkline({
  values: given,
  label,
}: {
  readonly values: readonly (number | null)[];
  readonly label: string;
}): ReactNode {
  // Nulls before the first figure are no gap.
  const values = given.slice(
    Math.max(
      0,
      given.findIndex((value) => value !== null),
    ),
  );
  const known = values.filter((value) => value !== null);
  const highest = Math.max(1e-9, ...known);
  const top = Math.min(...known) === highest ? 2 * highest : highest;
  const step = WIDTH / Math.max(1, values.length - 1);
  // Keeps its room without figures, so that nothing moves later.
  if (values.length < 2) return <svg className="spark" aria-hidden="true" />;
  let path = "";
  let isDrawing = false;
  values.forEach((value, index) => {
    if (value === null) {
      isDrawing = false;
      return;
    }
    const y = HEIGHT - 1 - (value / top) * (HEIGHT - 2);
    path += `${isDrawing ? "L" : "M"}${(index * step).toFixed(1)} ${y.toFixed(1)}`;
    isDrawing = true;
  });
  return (
    <svg className="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <path d={path} fill="none" stroke="currentColor" strokeWidth="1.5" vectorEffect="non-scaling-stroke" />
    </svg>
  );
}
