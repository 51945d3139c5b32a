// Rows held in place under the pointer, with a button for waiting ones; also as a plain table.
import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { type HeldRows, useHeldRows } from "../live/held-rows.ts";

/** The frame of held rows. The button overlays them, so that its appearance moves nothing. */
export function HeldBox({
  held: { waiting, showNew, holder },
  className = "",
  children,
}: {
  readonly held: Pick<HeldRows<unknown>, "waiting" | "showNew" | "holder">;
  readonly className?: string;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <div className={`${className} held`} {...holder}>
      <div className="new-rows" role="status">
        {waiting === 0 ? null : (
          <Button size="compact-sm" onClick={showNew}>
            {waiting.toLocaleString()} new
          </Button>
        )}
      </div>
      {children}
    </div>
  );
}

/** A table of held rows, short enough to be drawn whole; `head` has the heads of its columns. */
export function HeldTable<Row>({
  rows,
  idOf,
  head,
  children,
}: {
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
  readonly head: ReactNode;
  readonly children: (row: Row) => ReactNode;
}): ReactNode {
  const held = useHeldRows(rows, idOf);
  return (
    <HeldBox held={held} className="table-scroll">
      <table className="table">
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>
          {held.rows.map((row) => (
            <tr key={idOf(row)}>{children(row)}</tr>
          ))}
        </tbody>
      </table>
    </HeldBox>
  );
}
