// `grove node lost`: lists nodes that new users wait for after a loss of the store, and gives one up (D19).
import type { Command } from "commander";
import { GroveError } from "#base/errors.ts";
import { say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import { checkedId, type StoreFlags, withNodes, withStore } from "./ssh-node-command.ts";

/** Adds the verb to `grove node`. */
export function addLostVerb(root: Command, terminal: Terminal): void {
  withStore(
    root
      .command("lost")
      .description(
        "Say that a node does not come back. After the metadata store was lost, new users wait until every node has listed the roots that it " +
          "holds; this ends the wait for one. Without an id: show which nodes are waited for.",
      )
      .argument("[id]", "the node's id", checkedId),
  ).action((id: string | undefined, flags: StoreFlags) => lost(id, flags, terminal));
}

async function lost(id: string | undefined, flags: StoreFlags, terminal: Terminal): Promise<void> {
  await withNodes(flags, async (store) => {
    if (id !== undefined && !(await store.giveUpNode(id))) {
      throw new GroveError("BAD_ARGUMENT", `${id} is no node that the metadata store knows or waits for`);
    }
    const { awaited, givenUp } = await store.missingLists();
    if (flags.json) return sayJson(terminal, { awaited, given_up: givenUp });
    if (id !== undefined) {
      say(
        terminal,
        `${id} is given up: users whose roots it holds get new, empty ones, unless it comes back before they do.`,
      );
    }
    say(
      terminal,
      awaited.length === 0 ? "New users wait for no node." : `New users wait for ${awaited.join(", ")}.`,
    );
  });
}
