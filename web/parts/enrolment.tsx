// The enrolment commands of nodes, for actions and logs, ready to copy.
import type { ReactNode } from "react";
import { useActionNodes } from "../live/enrolment.ts";
import { countText } from "../words/number.ts";
import { CommandLine } from "./command-line.tsx";

/** Commands shown; the rest have the same form. */
const SHOWN = 3;

/** The commands for some nodes, or for the whole cluster; empty when all are enrolled. */
export function HowToEnrol({ nodeIds }: { readonly nodeIds?: readonly string[] }): ReactNode {
  const nodes = useActionNodes();
  const missing = nodes?.filter(
    ({ node_id: id, enrolled }) => !enrolled && (nodeIds === undefined || nodeIds.includes(id)),
  );
  if (missing === undefined || missing.length === 0) return null;
  return (
    <div className="panel quiet" style={{ marginTop: 12 }}>
      <p style={{ marginTop: 0 }}>
        {missing.length === 1 ? `${missing[0]?.node_name} is` : `${countText(missing.length, "node")} are`}{" "}
        not enrolled for actions. Type this where the metadata store can be reached, with the login of the
        machine in place of USER; it shows the key of the host, which you confirm:
      </p>
      {missing.slice(0, SHOWN).map((node) => (
        <CommandLine key={node.node_id} command={node.enrol_command ?? ""} />
      ))}
      {missing.length > SHOWN ? <p>… and so on, node by node.</p> : null}
    </div>
  );
}
