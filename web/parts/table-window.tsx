// Long tables: only the rows that are in sight are drawn, whether as lines or, on narrow screens, as cards.
import { useMediaQuery } from "@mantine/hooks";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useLayoutEffect, useState } from "react";

const LINE_PX = 37;
const CARD_PX = 200;
const CARD_GAP_PX = 8;

/** What is in sight of a table's rows. */
export interface TableWindow {
  /** For the table's body. */
  readonly body: (body: Element | null) => void;
  /** The rows to draw, from the first up to and without the end. */
  readonly first: number;
  readonly end: number;
  /** Room of what is not drawn, in px. */
  readonly before: number;
  readonly after: number;
  /** For each row drawn, which must also carry its index as `data-index`. */
  readonly measure: (row: Element | null) => void;
}

/** Follows the window's scrolling over a table of so many rows. */
export function useTableWindow(count: number): TableWindow {
  const [body, setBody] = useState<Element | null>(null);
  const [top, setTop] = useState(0);
  const isNarrow = useMediaQuery("(max-width: 700px)", false, { getInitialValueInEffect: false });
  // What stands above the table may come and go.
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

/** Stands for rows that are out of sight. */
export function Spacer({ px, columns }: { readonly px: number; readonly columns: number }): ReactNode {
  if (px <= 0) return null;
  return (
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height: px, padding: 0, border: 0 }} />
    </tr>
  );
}
