// `grove node remove`: removes a node that has stopped for good from the cluster and from SSH (D19, D20).
import type { Command } from "commander";
import { GroveError } from "#base/errors.ts";
import { askTyped } from "#client/terminal/prompt.ts";
import { note, say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import type { NodeRemoval, NodeStore } from "#metaserver/directory/directory.ts";
import type { RootMove } from "#metaserver/directory/root-move.ts";
import { bad, copyLine, roots } from "./move-orders.ts";
import { type StoreFlags, withNodes, withStore } from "./ssh-node-command.ts";

/** Kept copies that are named one by one. */
const COPIES_SHOWN = 20;

interface RemoveFlags extends StoreFlags {
  readonly abandonRoots: boolean;
  readonly sshOnly: boolean;
}

/** Adds the verb to `grove node`. */
export function addRemoveVerb(root: Command, terminal: Terminal): void {
  withStore(
    root
      .command("remove")
      .description(
        "Take a node out of the cluster that is stopped and holds no roots; the console then reaches it over SSH no longer. One that holds " +
          "some is refused, with their users.",
      )
      // It may have been added under an id that is refused today.
      .argument("<id>", "the node's id"),
  )
    .option(
      "--abandon-roots",
      "give up the roots that it holds: their users get new, empty ones; asks for their number",
      false,
    )
    .option("--ssh-only", "only forget how it is reached over SSH; the node stays in the cluster", false)
    .action((id: string, flags: RemoveFlags) => remove(id, flags, terminal));
}

async function remove(id: string, flags: RemoveFlags, terminal: Terminal): Promise<void> {
  await withNodes(flags, async (store) => {
    if (flags.sshOnly) return removeSsh(id, flags, store, terminal);
    let removal = await store.removeNode(id);
    if (removal.outcome === "holds_roots") {
      const copies = (await store.rootMoves()).filter(
        ({ target, state }) => target === id && state === "switched",
      );
      if (!flags.abandonRoots) throw holdsRoots(id, removal, { copies, flags, terminal });
      await confirm(id, removal, { copies, terminal });
      removal = await store.removeNode(id, removal.rootCount);
      if (removal.outcome === "holds_roots")
        throw bad(`${id} holds ${removal.rootCount} roots by now; nothing was removed`);
    }
    const { outcome, rootCount, owners, ssh } = removal;
    if (outcome === "unknown" && !ssh)
      throw bad(`${id} is not known: grove node list, and the console's nodes`);
    if (flags.json) {
      sayJson(terminal, {
        removed: id,
        registered: outcome === "removed",
        abandoned_roots: rootCount,
        owners,
        ssh,
      });
      return;
    }
    say(terminal, ...linesOf(id, removal));
  });
}

function* linesOf(id: string, { outcome, rootCount, ssh }: NodeRemoval): Generator<string> {
  if (outcome === "removed") {
    const lost =
      rootCount === 0 ? "it held no roots" : `${roots(rootCount)} given up, each user gets a new, empty one`;
    yield `${id} is out of the cluster: ${lost}.`;
  }
  if (ssh) yield `${id} is no longer reached over SSH.`;
  if (outcome === "removed")
    yield `Its certificate lets it register no more, until it joins anew (grove node token -id ${id}), and counts as the cluster's until it ends: grove ca revoke ${id} -ca_dir FOLDER`;
}

async function removeSsh(
  id: string,
  flags: RemoveFlags,
  store: NodeStore,
  terminal: Terminal,
): Promise<void> {
  if (!(await store.removeSshNode(id))) throw bad(`${id} is not known: grove node list`);
  if (flags.json)
    sayJson(terminal, { removed: id, registered: false, abandoned_roots: 0, owners: [], ssh: true });
  else say(terminal, `${id} is no longer reached over SSH.`);
}

/** Lists the owners of the node's roots, and returns the refusal with the remedy for each of them. */
function holdsRoots(
  id: string,
  removal: NodeRemoval,
  { copies, flags, terminal }: { copies: readonly RootMove[]; flags: RemoveFlags; terminal: Terminal },
): GroveError {
  if (!flags.json) {
    noteOwners(removal, terminal);
    noteCopies(copies, terminal);
  }
  const kept =
    copies.length === 0
      ? ""
      : `. Of ${roots(copies.length)} the former node keeps a copy, which grove root move USER -take_back serves again`;
  const alone = copies.length === 0 ? "alone" : "alone, or have changed there";
  return new GroveError(
    "BAD_ARGUMENT",
    `${id} holds ${roots(removal.rootCount)}, whose files are on its disk ${alone}. Start it and move them away (grove node drain ${id}), or restore ` +
      `its newest backup and serve that as ${id} (grove backup restore)${kept}. Where nothing is left, -abandon_roots gives their users new, empty ones`,
    {
      metadata: {
        roots: String(removal.rootCount),
        owners: removal.owners.join(","),
        ...(copies.length === 0 ? {} : { copies: String(copies.length) }),
      },
    },
  );
}

/** Copies that an operator may take back instead. */
function noteCopies(copies: readonly RootMove[], terminal: Terminal): void {
  for (const move of copies.slice(0, COPIES_SHOWN))
    note(terminal, `  ${copyLine(move)} To serve that: grove root move ${move.owner} -take_back`);
  if (copies.length > COPIES_SHOWN) note(terminal, `  … and ${copies.length - COPIES_SHOWN} more copies`);
}

/** Asks the operator how many users lose their files. Throws BAD_ARGUMENT for another number. */
async function confirm(
  id: string,
  removal: NodeRemoval,
  { copies, terminal }: { copies: readonly RootMove[]; terminal: Terminal },
): Promise<void> {
  noteOwners(removal, terminal);
  noteCopies(copies, terminal);
  const alone = copies.length === 0 ? `on ${id} alone` : `on ${id}, and in those copies`;
  note(terminal, `What these users store is ${alone}; each gets a new, empty root.`);
  const typed = await askTyped(terminal, "Type their number to give them up: ");
  if (typed !== String(removal.rootCount)) throw bad("that is not their number; nothing was removed");
}

function noteOwners({ owners, rootCount }: NodeRemoval, terminal: Terminal): void {
  for (const owner of owners) note(terminal, `  ${owner}`);
  if (rootCount > owners.length) note(terminal, `  … and ${rootCount - owners.length} more`);
}
