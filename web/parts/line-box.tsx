// Lines in a scrolling box: only visible ones are drawn, and the box follows its end.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef } from "react";

const LINE_PX = 20;

/** The box. It stays where a user has scrolled up to. */
export function LineBox<Line>({
  lines,
  label,
  className,
  lineClass,
  children,
}: {
  readonly lines: readonly Line[];
  readonly label: string;
  readonly className: string;
  readonly lineClass: string;
  readonly children: (line: Line) => ReactNode;
}): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const lastTop = useRef(0);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PX,
    overscan: 20,
  });
  useEffect(() => {
    if (isAtEnd.current) rows.scrollToIndex(lines.length - 1, { align: "end" });
  }, [lines, rows]);
  return (
    <div
      ref={box}
      className={className}
      role="log"
      aria-label={label}
      // A region that scrolls must be reachable by keyboard.
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        // New lines below the last position do not stop the following: only scrolling up does.
        if (scrollTop + clientHeight >= scrollHeight - 2 * LINE_PX) isAtEnd.current = true;
        else if (scrollTop < lastTop.current) isAtEnd.current = false;
        lastTop.current = scrollTop;
      }}
    >
      <div style={{ height: rows.getTotalSize(), position: "relative" }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const line = lines[index];
          return line === undefined ? null : (
            <div
              key={index}
              ref={rows.measureElement}
              data-index={index}
              className={lineClass}
              style={{ transform: `translateY(${start}px)` }}
            >
              {children(line)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
