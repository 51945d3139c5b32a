// `grove node lost-root`: gives up what a restore lost of a user, who then gets an empty root (D19).
import type { Command } from "commander";
import { GroveError, isGroveError } from "#base/errors.ts";
import { canonicalUsername } from "#base/names.ts";
import { say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import { type StoreFlags, withNodes, withStore } from "./ssh-node-command.ts";

/** Adds the verb to `grove node`. */
export function addLostRootVerb(root: Command, terminal: Terminal): void {
  withStore(
    root
      .command("lost-root")
      .description(
        "Say that a user's root, which a restored node lacks, does not come back: the user gets a new, empty one at the next sign-in, and is " +
          "refused until then. A root that its node has stays as it is.",
      )
      .argument("<user...>", "whose roots; the console's alert node_restored names them"),
  ).action((users: readonly string[], flags: StoreFlags) => lostRoots(users, flags, terminal));
}

async function lostRoots(users: readonly string[], flags: StoreFlags, terminal: Terminal): Promise<void> {
  const owners = users.map(ownerOf);
  await withNodes(flags, async (store) => {
    const places = new Map<string, string>();
    for (const owner of owners) {
      const root = await store.giveUpRoot(owner);
      if (root === undefined) throw bad(`${owner} has no root that a node held${told(places)}`);
      places.set(owner, root.fsId);
    }
    if (flags.json)
      return sayJson(terminal, { given_up: [...places].map(([owner, node]) => ({ owner, node })) });
    for (const [owner, node] of places) {
      say(
        terminal,
        `${owner} gets a new, empty root on ${node} at the next sign-in, unless ${node} has the old one: that stays as it is.`,
      );
    }
  });
}

function told(places: ReadonlyMap<string, string>): string {
  return places.size === 0 ? "" : `; given up were those of ${[...places.keys()].join(", ")}`;
}

function ownerOf(text: string): string {
  try {
    return canonicalUsername(text);
  } catch (error) {
    if (!isGroveError(error, "BAD_ARGUMENT")) throw error;
    throw bad(`a user is an e-mail address: ${error.message}`);
  }
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
