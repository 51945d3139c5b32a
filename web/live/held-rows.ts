// Rows that somebody points at or works in stay where they are: what is new waits until they have gone on, or ask for it.
import { type FocusEvent, type PointerEvent, useMemo, useState } from "react";

/** Rows as they are shown, and how to show what waits. */
export interface HeldRows<Row> {
  readonly rows: readonly Row[];
  /** How many new ones wait. */
  readonly waiting: number;
  readonly showNew: () => void;
  /** For the element around the rows. */
  readonly holder: {
    readonly onPointerEnter: (event: PointerEvent) => void;
    readonly onPointerLeave: (event: PointerEvent) => void;
    readonly onFocus: () => void;
    readonly onBlur: (event: FocusEvent) => void;
  };
}

/** The rows as they were, with what is known of each now; new ones behind the last of them are added, others are counted. */
export function held<Row>(
  rows: readonly Row[],
  before: ReadonlyMap<string, Row>,
  idOf: (row: Row) => string,
): { readonly rows: readonly Row[]; readonly waiting: number } {
  const now = new Map(rows.map((row) => [idOf(row), row]));
  const kept = [...before].map(([id, row]) => now.get(id) ?? row);
  const lastKnown = rows.findLastIndex((row) => before.has(idOf(row)));
  const fresh = rows.filter((row) => !before.has(idOf(row)));
  const behind = rows.slice(lastKnown + 1).filter((row) => !before.has(idOf(row)));
  return { rows: [...kept, ...behind], waiting: fresh.length - behind.length };
}

/** Holds rows while a pointer or the focus is within them; a finger, which comes and goes, holds nothing. */
export function useHeldRows<Row>(rows: readonly Row[], idOf: (row: Row) => string): HeldRows<Row> {
  const [before, setBefore] = useState<ReadonlyMap<string, Row>>();
  const [isPointed, setPointed] = useState(false);
  const shown = useMemo(
    () => (before === undefined ? { rows, waiting: 0 } : held(rows, before, idOf)),
    [rows, before, idOf],
  );
  const hold = (): void => setBefore((already) => already ?? mapOf(rows, idOf));
  return {
    ...shown,
    showNew: () => setBefore(mapOf(rows, idOf)),
    holder: {
      onPointerEnter: ({ pointerType }) => {
        if (pointerType === "touch") return;
        setPointed(true);
        hold();
      },
      onPointerLeave: ({ currentTarget }) => {
        setPointed(false);
        // What had the focus may be gone, as the button is that shows new rows.
        if (!currentTarget.contains(document.activeElement)) setBefore(undefined);
      },
      onFocus: hold,
      onBlur: ({ currentTarget, relatedTarget }) => {
        if (currentTarget.contains(relatedTarget)) return;
        if (!isPointed) setBefore(undefined);
      },
    },
  };
}

function mapOf<Row>(rows: readonly Row[], idOf: (row: Row) => string): ReadonlyMap<string, Row> {
  return new Map(rows.map((row) => [idOf(row), row]));
}
