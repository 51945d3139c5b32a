// `grove user` as a whole: verbs that call the cluster, and those that use the metadata store.
import type { Command } from "commander";
import { command as clusterVerbs } from "#client/administration/user-command.ts";
import { processTerminal } from "#client/terminal/terminal.ts";
import { addRebindVerbs, addRenameVerbs } from "#metaserver/process/rebind-user-command.ts";

/** Makes the parser of `grove user` with all its verbs. */
export function command(): Command {
  const group = clusterVerbs();
  addRebindVerbs(group, processTerminal());
  addRenameVerbs(group, processTerminal());
  // Below the examples of the other verbs.
  group.addHelpText(
    "after",
    "  grove user remap --help   when the identity provider, or an account there, was changed\n" +
      "  grove user renames        people whose address was changed, on the host of the metadata store",
  );
  return group;
}
