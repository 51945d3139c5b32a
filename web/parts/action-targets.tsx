// The exact commands of an action on each node, and their outcome.
import type { ReactNode } from "react";
import { Link } from "wouter";
import { shellWord } from "#base/shell-word.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { isDryRun, shownState, stateText } from "../words/action.ts";
import { formatSpan } from "../words/time.ts";
import { StateMark } from "./state-mark.tsx";

type Target = ActionRecord["targets"][number];

/** A part for each node; equal ones appear once. */
export function ActionTargets({ record }: { readonly record: ActionRecord }): ReactNode {
  const { targets } = record;
  const commands = new Set(targets.map(({ argv }) => commandText(argv)));
  const common = targets.length > 1 && commands.size === 1 ? [...commands][0] : undefined;
  return (
    <>
      {common === undefined ? null : (
        <>
          <p className="quiet tight">The same on all {targets.length} nodes:</p>
          <pre className="command">{common}</pre>
        </>
      )}
      <ul className="targets">
        {targets.map((target) => (
          <li key={target.node_id}>
            <div className="title-line">
              <Link className="row-link" href={`/nodes/${encodeURIComponent(target.node_id)}`}>
                {target.node_name}
              </Link>
              {isDryRun(record) ? null : (
                <StateMark state={shownState(target.state)} label={stateText(target.state)} />
              )}
              <span className="quiet">{factsOf(target)}</span>
            </div>
            {target.message === undefined && target.reason === undefined ? null : (
              <p className="tight">{target.message ?? target.reason}</p>
            )}
            {common === undefined ? <pre className="command">{commandText(target.argv)}</pre> : null}
          </li>
        ))}
      </ul>
    </>
  );
}

function factsOf(target: Target): string {
  const { exit_code: code, started_at: from, finished_at: to, git_before: before, git_after: after } = target;
  return [
    ...(code === null ? [] : [`exit code ${code}`]),
    ...(from === undefined || to === undefined ? [] : [`took ${formatSpan(to - from)}`]),
    ...(before === undefined || after === undefined ? [] : [`${before.slice(0, 9)} → ${after.slice(0, 9)}`]),
  ].join(", ");
}

/** One command per line, split at "&&". */
function commandText(argv: readonly string[]): string {
  return argv
    .map((word) => (word === "&&" ? word : shellWord(word)))
    .join(" ")
    .replaceAll(" && ", "\n");
}
