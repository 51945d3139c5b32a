// `grove node remove`: removes a node that has stopped for good from the cluster and from SSH (D19, D20).
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { GroveError } from "#base/errors.ts";
import type { NodeRemoval, NodeStore } from "#metaserver/directory/directory.ts";
import { print, type StoreFlags, withNodes, withStore } from "./ssh-node-command.ts";

interface RemoveFlags extends StoreFlags {
  readonly abandonRoots: boolean;
  readonly sshOnly: boolean;
}

/** Adds the verb to `grove node`. */
export function addRemoveVerb(root: Command): void {
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
    .action(remove);
}

async function remove(id: string, flags: RemoveFlags): Promise<void> {
  await withNodes(flags, async (store) => {
    if (flags.sshOnly) return removeSsh(id, flags, store);
    let removal = await store.removeNode(id);
    if (removal.outcome === "holds_roots") {
      if (!flags.abandonRoots) throw holdsRoots(id, removal, flags);
      await confirm(id, removal);
      removal = await store.removeNode(id, removal.rootCount);
      if (removal.outcome === "holds_roots")
        throw bad(`${id} holds ${removal.rootCount} roots by now; nothing was removed`);
    }
    const { outcome, rootCount, owners, ssh } = removal;
    if (outcome === "unknown" && !ssh)
      throw bad(`${id} is not known: grove node list, and the console's nodes`);
    if (flags.json) {
      print({ removed: id, registered: outcome === "removed", abandoned_roots: rootCount, owners, ssh });
      return;
    }
    process.stdout.write(`${[...linesOf(id, removal)].join("\n")}\n`);
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

async function removeSsh(id: string, flags: RemoveFlags, store: NodeStore): Promise<void> {
  if (!(await store.removeSshNode(id))) throw bad(`${id} is not known: grove node list`);
  if (flags.json) print({ removed: id, registered: false, abandoned_roots: 0, owners: [], ssh: true });
  else process.stdout.write(`${id} is no longer reached over SSH.\n`);
}

/** Lists the owners of the node's roots, and returns the refusal with the remedy for each of them. */
function holdsRoots(id: string, removal: NodeRemoval, flags: RemoveFlags): GroveError {
  if (!flags.json) process.stderr.write(`${ownersIn(removal)}\n`);
  return new GroveError(
    "BAD_ARGUMENT",
    `${id} holds ${roots(removal.rootCount)}, whose files are on its disk alone. Start it and move them away (grove node drain ${id}), or restore ` +
      `its newest backup and serve that as ${id} (grove backup restore). Where neither is left, -abandon_roots gives their users new, empty ones`,
    { metadata: { roots: String(removal.rootCount), owners: removal.owners.join(",") } },
  );
}

/** Asks the operator how many users lose their files. Throws BAD_ARGUMENT for another number. */
async function confirm(id: string, removal: NodeRemoval): Promise<void> {
  process.stderr.write(
    `${ownersIn(removal)}\nWhat these users store is on ${id} alone; each gets a new, empty root.\n`,
  );
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const typed = await new Promise<string>((resolve) => {
      lines.once("close", () => resolve(""));
      lines.question("Type their number to give them up: ").then(resolve, () => resolve(""));
    });
    if (typed.trim() === String(removal.rootCount)) return;
  } finally {
    lines.close();
  }
  throw bad("that is not their number; nothing was removed");
}

function ownersIn({ owners, rootCount }: NodeRemoval): string {
  const more = rootCount > owners.length ? [`  … and ${rootCount - owners.length} more`] : [];
  return [...owners.map((owner) => `  ${owner}`), ...more].join("\n");
}

function roots(count: number): string {
  return count === 1 ? "1 root" : `${count} roots`;
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
