// Slots of time: intervals of wall time of one length, and the slot of an answer.

/** A wall clock before this was never set: a machine without network time starts at its build date. */
const CLOCK_SET_FROM_MS: number = Date.UTC(2020, 0, 1);

/** False for a clock that was never set. */
export function isClockSet(wallMs: number): boolean {
  return wallMs >= CLOCK_SET_FROM_MS;
}

/** The slot that contains a moment of wall time. */
export function slotOf(wallMs: number, slotMs: number): number {
  return Math.floor(wallMs / slotMs);
}

/**
 * The slot of an answer after one in the slot `before`. Polls are not exactly regular: two answers about one
 * interval apart get neighbouring slots, even if one was late. The wall clock may be at most one slot away.
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
