// Long tables: only visible rows are drawn, as rows or, on narrow screens, as cards.
import { useMediaQuery } from "@mantine/hooks";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useLayoutEffect, useState } from "react";

const LINE_PX = 37;
const CARD_PX = 200;
const CARD_GAP_PX = 8;

/** The visible part of a table. */
export interface TableWindow {
  /** Ref for the table's body. */
  readonly body: (body: Element | null) => void;
  /** The rows to draw, end exclusive. */
  readonly first: number;
  readonly end: number;
  /** Height of the rows that are not drawn, in px. */
  readonly before: number;
  readonly after: number;
  /** Ref for each drawn row, which must also have its index as `data-index`. */
  readonly measure: (row: Element | null) => void;
}

/** Follows the window's scrolling over a table of this many rows. */
export function useTableWindow(count: number): TableWindow {
  const [body, setBody] = useState<Element | null>(null);
  const [top, setTop] = useState(0);
  const isNarrow = useMediaQuery("(max-width: 700px)", false, { getInitialValueInEffect: false });
  // Content above the table may change.
  useLayoutEffect(() => {
    if (body === null) return;
    const look = (): void => setTop(Math.round(body.getBoundingClientRect().top + scrollY));
    look();
    const observer = new ResizeObserver(look);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, [body]);
  const rows = useWindowVirtualizer({
    count,
    estimateSize: () => (isNarrow ? CARD_PX : LINE_PX),
    gap: isNarrow ? CARD_GAP_PX : 0,
    overscan: 8,
    scrollMargin: top,
  });
  const shown = rows.getVirtualItems();
  const last = shown.at(-1);
  return {
    body: setBody,
    first: shown[0]?.index ?? 0,
    end: last === undefined ? 0 : last.index + 1,
    before: Math.max(0, (shown[0]?.start ?? top) - top),
    after: last === undefined ? rows.getTotalSize() : Math.max(0, rows.getTotalSize() + top - last.end),
    measure: rows.measureElement,
  };
}

/** Stands for rows out of sight. */
export function Spacer({ px, columns }: { readonly px: number; readonly columns: number }): ReactNode {
  if (px <= 0) return null;
  return (
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height: px, padding: 0, border: 0 }} />
    </tr>
  );
}
