// The door's clock, as far as its answers tell it: times that it tells are not the viewer's.

/** Differences up to this are those of the way and of whole seconds. */
const NOISE_MS = 2_000;

let aheadMs = 0;

/** Hears of the door's time in the header Date of an answer. */
export function noteDoorDate(date: string | null): void {
  const ms = date === null ? Number.NaN : Date.parse(date) - Date.now();
  if (Number.isFinite(ms)) aheadMs = Math.abs(ms) <= NOISE_MS ? 0 : ms;
}

/** Unix milliseconds by the door's clock; by the viewer's until an answer has come. */
export function doorNowMs(): number {
  return Date.now() + aheadMs;
}
