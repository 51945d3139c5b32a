// The entries of a folder as a list or as tiles: virtualised, selected by mouse, touch and keyboard.
import { useVirtualizer, type VirtualItem } from "@tanstack/react-virtual";
import { type KeyboardEvent, type MouseEvent, type ReactNode, useEffect, useRef, useState } from "react";
import type { FileEntry } from "#wire/webapi/files.ts";
import type { Place } from "./api.ts";
import { Entry } from "./entry.tsx";
import type { Order, SortKey } from "./use-folder.ts";
import { useNow } from "./use-now.ts";
import { type Selection, stepOf, useSelection } from "./use-selection.ts";

const ROW_PX = 44;
const TILE_PX = 172;
const TILE_MIN_PX = 150;

/** What the keyboard asks for, beside looking and selecting. */
export type EntryKey = "copy" | "move" | "rename" | "trash" | "up";

/** How the entries are shown, and what happens to them. */
export interface EntriesProps {
  readonly here: Place;
  readonly entries: readonly FileEntry[];
  readonly selected: ReadonlySet<string>;
  readonly isTiles: boolean;
  readonly order: Order;
  readonly onOrder: (key: SortKey) => void;
  readonly onSelect: (names: ReadonlySet<string>) => void;
  readonly onOpen: (entry: FileEntry) => void;
  readonly onKey: (key: EntryKey) => void;
}

const KEYS: Readonly<Record<string, EntryKey>> = {
  F2: "rename",
  Delete: "trash",
  Backspace: "up",
  m: "move",
  c: "copy",
};

/** Shows them. */
export function Entries(props: EntriesProps): ReactNode {
  const { entries, selected, isTiles } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const width = useWidth(scroller);
  const perRow = isTiles ? Math.max(1, Math.floor(width / TILE_MIN_PX)) : 1;
  const virtualizer = useVirtualizer({
    count: Math.ceil(entries.length / perRow),
    getScrollElement: () => scroller.current,
    estimateSize: () => (isTiles ? TILE_PX : ROW_PX),
    overscan: 8,
  });
  useEffect(() => virtualizer.measure(), [virtualizer, isTiles]);
  const { at, select } = useSelection(entries, selected, props.onSelect);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / ROW_PX) - 2);
    const step = stepOf(event.key, at, { perRow, page, count: entries.length });
    if (step !== undefined) {
      // The first arrow selects what the keyboard is at.
      const to = selected.size === 0 && event.key.startsWith("Arrow") ? at : step;
      virtualizer.scrollToIndex(Math.floor(to / perRow));
      select(to, event.shiftKey ? "range" : "one");
    } else if (!actOf(event, props, { at, select })) return;
    event.preventDefault();
  };
  // The second click of two may fall into the folder that the first one has opened.
  const clicked = useRef<string>(undefined);
  const onClick = (event: MouseEvent): void => {
    // The keys for what is selected are the list's.
    if (event.target instanceof HTMLInputElement) scroller.current?.focus();
    const index = indexOf(event);
    if (index === undefined) return;
    const name = entries[index]?.name;
    if (event.detail > 1 && clicked.current !== name) return;
    clicked.current = name;
    scroller.current?.focus();
    select(index, event.shiftKey ? "range" : event.ctrlKey || event.metaKey ? "add" : "one");
  };
  const onDoubleClick = (event: MouseEvent): void => {
    const entry = entries[indexOf(event) ?? -1];
    if (entry !== undefined && entry.name === clicked.current) props.onOpen(entry);
  };
  return (
    <div
      ref={scroller}
      className={isTiles ? "entries tiles" : "entries"}
      role="grid"
      aria-label="Files and folders"
      aria-multiselectable
      aria-rowcount={entries.length + 1}
      aria-activedescendant={entries.length === 0 ? undefined : `entry-${at}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onClick={onClick}
      onDoubleClick={onDoubleClick}
    >
      <Heads order={props.order} onOrder={props.onOrder} />
      <div role="rowgroup" className="entries-body" style={{ height: virtualizer.getTotalSize() }}>
        <Rows {...props} rows={virtualizer.getVirtualItems()} perRow={perRow} at={at} select={select} />
      </div>
    </div>
  );
}

function Rows({
  entries,
  rows,
  perRow,
  at,
  select,
  ...list
}: EntriesProps & Selection & { readonly rows: readonly VirtualItem[]; readonly perRow: number }): ReactNode {
  const nowMs = useNow();
  const width = `${100 / perRow}%`;
  return rows.flatMap((row) =>
    entries.slice(row.index * perRow, (row.index + 1) * perRow).map((entry, column) => {
      const index = row.index * perRow + column;
      return (
        <Entry
          key={entry.name}
          entry={entry}
          here={list.here}
          index={index}
          nowMs={nowMs}
          isActive={index === at}
          isSelected={list.selected.has(entry.name)}
          isTile={list.isTiles}
          style={{ left: `${(column * 100) / perRow}%`, top: row.start, width, height: row.size }}
          onToggle={() => select(index, "add")}
          onOpen={() => list.onOpen(entry)}
        />
      );
    }),
  );
}

/** Does what a key stands for; false for one that stands for nothing. */
function actOf(
  event: KeyboardEvent,
  { entries, onOpen, onSelect, onKey }: EntriesProps,
  { at, select }: Selection,
): boolean {
  const isCommand = event.ctrlKey || event.metaKey;
  const entry = entries[at];
  const key = isCommand ? undefined : KEYS[event.key];
  if (event.key === "Enter" && entry !== undefined) onOpen(entry);
  else if (event.key === " ") select(at, "add");
  else if (event.key === "a" && isCommand) onSelect(new Set(entries.map(({ name }) => name)));
  else if (event.key === "Escape") onSelect(new Set());
  else if (key !== undefined) onKey(key);
  else return false;
  return true;
}

/** The entry under the mouse; undefined on its checkbox and its name, which act for themselves. */
function indexOf({ target }: MouseEvent): number | undefined {
  if (!(target instanceof Element) || target.closest("input, button") !== null) return undefined;
  const index = target.closest("[data-index]")?.getAttribute("data-index");
  return index === null || index === undefined ? undefined : Number(index);
}

function useWidth(place: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [place]);
  return width;
}

const COLUMNS: readonly { readonly key: SortKey; readonly text: string }[] = [
  { key: "name", text: "Name" },
  { key: "size", text: "Size" },
  { key: "changed", text: "Changed" },
];

function Heads({ order, onOrder }: Pick<EntriesProps, "onOrder" | "order">): ReactNode {
  return (
    <div role="rowgroup" className="entries-head">
      <div role="row" aria-rowindex={1}>
        {COLUMNS.map(({ key, text }) => (
          <div
            key={key}
            role="columnheader"
            className={`cell-${key}`}
            aria-sort={order.key === key ? (order.isDown ? "descending" : "ascending") : "none"}
          >
            <button type="button" className="plain" onClick={() => onOrder(key)}>
              {text} {order.key === key ? (order.isDown ? "▾" : "▴") : ""}
            </button>
          </div>
        ))}
      </div>
    </div>
  );
}
