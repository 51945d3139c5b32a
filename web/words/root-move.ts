// Moves of roots in words: how far one is, what is left of a node that is taken out of service.
import type { DrainView, RootMoveView } from "#wire/webapi/root-move.ts";
import { bytesText, countText } from "./number.ts";
import { formatSpan } from "./time.ts";

/** What operators read of a node that is taken out of service. */
export const OUT_OF_SERVICE = "It is taken out of service and gets no new users.";

/** How far a move is, without a full stop. */
export function moveText(move: RootMoveView): string {
  switch (move.state) {
    case "copying":
      return move.problem === null ? copyingText(move) : `waits: ${move.problem}`;
    case "frozen":
      // Without a target it is one that the metadata store has lost.
      return move.to === "" && move.problem !== null
        ? `is frozen: ${move.problem}`
        : "switches now; calls wait for some seconds";
    case "switched":
      if (isLostThere(move)) {
        const way = `grove root move ${move.owner} -take_back`;
        return `${move.to_name} does not have it; ${move.from_name} keeps its copy, which ${way} serves again`;
      }
      return `lives on ${move.to_name}; ${move.from_name} keeps its copy until you confirm`;
    case "confirmed":
      return `confirmed; ${move.from_name} removes its copy`;
    case "returned":
      return `taken back; ${move.from_name} serves its copy again`;
    case "undone":
      return move.to === "" ? "undone" : `undone; ${move.to_name} removes what has come`;
  }
}

function copyingText({
  percent,
  copied_bytes: copied,
  total_bytes: total,
  remaining_seconds: left,
}: RootMoveView): string {
  if (percent === null) return `${bytesText(copied)} copied`;
  const time = left === null ? "" : `, about ${formatSpan(left)} left`;
  return `${bytesText(copied)} of ${bytesText(total)} copied${time}`;
}

/** What is left of a node that is taken out of service, in sentences. */
export function drainText(drain: DrainView): string {
  const { node_name: name, roots_left: left, under_way: moving, kept_copies: copies } = drain;
  const removing = drain.removing_copies;
  if (left > 0) {
    const going = drain.driven
      ? ""
      : " This console begins none of them: a typed command does, or nothing at all.";
    const problem = drain.problem === null ? "" : ` One waits: ${drain.problem}.`;
    return `${countText(left, "root")} left on ${name}, ${moving} of them on the way.${going}${problem}`;
  }
  if (copies > 0) {
    return `${name} has no roots left, and keeps copies of ${countText(copies, "root")}. Look at them on the other nodes, then let it remove them.`;
  }
  if (removing > 0) {
    return `${name} has no roots left, and still removes its copies of ${countText(removing, "root")}. Once it has, stop it, wait 30 s, and take it out of the cluster.`;
  }
  return `${name} is empty and gets no roots. Stop it, wait 30 s, and take it out of the cluster.`;
}

/** True for a root whose new node has lost it: what its former node keeps may be the last copy. */
export function isLostThere({ state, problem }: Pick<RootMoveView, "state" | "problem">): boolean {
  return state === "switched" && problem !== null;
}

/** True while a move can be given up. */
export function mayBeUndone({ state }: Pick<RootMoveView, "state">): boolean {
  return state === "copying" || state === "frozen";
}
