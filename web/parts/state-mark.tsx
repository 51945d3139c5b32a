// A state as a shape and a word.
import type { ReactNode } from "react";
import { SHAPES, type ShownState } from "../words/node-state.ts";

/** Shape and word of a state; the colour adds nothing. */
export function StateMark({
  state,
  label,
}: {
  readonly state: ShownState;
  readonly label?: string;
}): ReactNode {
  return (
    <span className="state" data-state={state}>
      <span aria-hidden="true">{SHAPES[state]}</span>
      {label ?? state}
    </span>
  );
}
