// Slots of time: wall time cut into pieces of one length, and which of them an answer belongs to.

/** A wall clock before this was never set: it stands at the machine's making until the network tells it the time. */
const CLOCK_SET_FROM_MS: number = Date.UTC(2020, 0, 1);

/** False for a clock that cannot be right yet. */
export function isClockSet(wallMs: number): boolean {
  return wallMs >= CLOCK_SET_FROM_MS;
}

/** The slot in which a moment of wall time lies. */
export function slotOf(wallMs: number, slotMs: number): number {
  return Math.floor(wallMs / slotMs);
}

/**
 * The slot of an answer, given that of the one before. Polls are not on the dot: two answers about one interval apart get neighbouring
 * slots, even where one of them came a little late, as long as the wall clock is no further than one slot away.
 */
export function slotAfter(
  before: { readonly slot: number; readonly wallMs: number } | undefined,
  wallMs: number,
  slotMs: number,
): number {
  const slot = slotOf(wallMs, slotMs);
  if (before === undefined || wallMs <= before.wallMs) return slot;
  const next = before.slot + Math.max(1, Math.round((wallMs - before.wallMs) / slotMs));
  return Math.abs(next - slot) <= 1 ? next : slot;
}
