// Which entries are selected, and which of them the keyboard is at.
import { useRef, useState } from "react";
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
  const [active, setActive] = useState(0);
  const anchor = useRef(0);
  const select = (index: number, how: SelectHow): void => {
    const entry = entries[index];
    if (entry === undefined) return;
    setActive(index);
    if (how === "range") {
      const [from, to] = [Math.min(anchor.current, index), Math.max(anchor.current, index)];
      return onSelect(new Set(entries.slice(from, to + 1).map(({ name }) => name)));
    }
    anchor.current = index;
    if (how === "one") return onSelect(new Set([entry.name]));
    const next = new Set(selected);
    if (!next.delete(entry.name)) next.add(entry.name);
    onSelect(next);
  };
  return { at: Math.min(active, Math.max(0, entries.length - 1)), select };
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
