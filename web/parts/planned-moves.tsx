// The roots of a plan, each with its size and its way.
import type { ReactNode } from "react";
import type { PlannedMoveView } from "#wire/webapi/root-move.ts";
import { bytesText, countText } from "../words/number.ts";

/** Rows that are drawn. */
const ROWS_MAX = 100;

/** The table; `total` counts those that the answer has left out too. */
export function PlannedMoves({
  moves,
  total,
  areSizesKnown = true,
}: {
  readonly moves: readonly PlannedMoveView[];
  readonly total: number;
  readonly areSizesKnown?: boolean;
}): ReactNode {
  const shown = moves.slice(0, ROWS_MAX);
  return (
    <>
      <div className="table-scroll breaks">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">User</th>
              <th scope="col" className="number">
                Size
              </th>
              <th scope="col">From</th>
              <th scope="col">To</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((move) => (
              <tr key={move.owner}>
                <th scope="row">{move.owner}</th>
                <td data-head="Size" className="number">
                  {areSizesKnown ? bytesText(move.bytes) : "not known"}
                </td>
                <td data-head="From">{move.from_name}</td>
                <td data-head="To">{move.to_name}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {total > shown.length ? (
        <p className="quiet">And {countText(total - shown.length, "root")} more.</p>
      ) : null}
    </>
  );
}
