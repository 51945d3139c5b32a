// Keeps rows in place under a pointer or the focus; new rows wait until it leaves, or until asked for.
import { type FocusEvent, type PointerEvent, useMemo, useState } from "react";

/** Rows as shown, and a function that shows the waiting ones. */
export interface HeldRows<Row> {
  readonly rows: readonly Row[];
  /** Number of waiting rows. */
  readonly waiting: number;
  readonly showNew: () => void;
  /** Props for the element around the rows. */
  readonly holder: {
    readonly onPointerEnter: (event: PointerEvent) => void;
    readonly onPointerLeave: (event: PointerEvent) => void;
    readonly onFocus: () => void;
    readonly onBlur: (event: FocusEvent) => void;
  };
}

/** The held rows with current data; new ones after the last are appended, others counted. */
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

/**
 * Holds rows under a mouse pointer or the focus; touches hold nothing. Rows that answer another question, such
 * as a search, want a key of their own: those of the one before would stay.
 */
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
        // The focused element may be gone, such as the button that shows new rows.
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
