// Which entries are selected, and which of them the keyboard is at.
import { useMemo, useRef, useState } from "react";
import type { FileEntry } from "#wire/webapi/files.ts";

/** How an entry is added to what is selected. */
export type SelectHow = "add" | "one" | "range";

/** The selection of a list. */
export interface Selection {
  /** Index of the entry that the keyboard is at. */
  readonly at: number;
  readonly select: (index: number, how: SelectHow) => void;
}

/** Keeps it; `onSelect` gets the names. */
export function useSelection(
  entries: readonly FileEntry[],
  selected: ReadonlySet<string>,
  onSelect: (names: ReadonlySet<string>) => void,
): Selection {
  // By their names: what arrives before them moves their places.
  const [active, setActive] = useState<Spot>(FIRST);
  const anchor = useRef<Spot>(FIRST);
  const select = (index: number, how: SelectHow): void => {
    const entry = entries[index];
    if (entry === undefined) return;
    const spot = { name: entry.name, index };
    setActive(spot);
    if (how === "range") {
      const start = indexOf(anchor.current, entries);
      const [from, to] = [Math.min(start, index), Math.max(start, index)];
      return onSelect(new Set(entries.slice(from, to + 1).map(({ name }) => name)));
    }
    anchor.current = spot;
    if (how === "one") return onSelect(new Set([entry.name]));
    const next = new Set(selected);
    if (!next.delete(entry.name)) next.add(entry.name);
    onSelect(next);
  };
  const at = useMemo(() => indexOf(active, entries), [active, entries]);
  return { at, select };
}

/** A place in the list: its name, and its index while that was looked at. */
interface Spot {
  readonly name: string | undefined;
  readonly index: number;
}

const FIRST: Spot = { name: undefined, index: 0 };

/** Where a place is by now; of one that has gone, where it was. */
function indexOf({ name, index }: Spot, entries: readonly FileEntry[]): number {
  const at = name === undefined ? -1 : entries.findIndex((entry) => entry.name === name);
  return at === -1 ? Math.min(index, Math.max(0, entries.length - 1)) : at;
}

/** Where a key leads from an index; undefined for a key that leads nowhere. */
export function stepOf(
  key: string,
  at: number,
  { perRow, page, count }: { readonly perRow: number; readonly page: number; readonly count: number },
): number | undefined {
  const sideways = perRow > 1 ? { ArrowRight: at + 1, ArrowLeft: at - 1 } : {};
  const steps: Readonly<Record<string, number>> = {
    ...sideways,
    ArrowDown: at + perRow,
    ArrowUp: at - perRow,
    PageDown: at + page * perRow,
    PageUp: at - page * perRow,
    Home: 0,
    End: count - 1,
  };
  const step = steps[key];
  return step === undefined || count === 0 ? undefined : Math.min(Math.max(step, 0), count - 1);
}
