// The verb `mv`: moves and renames.
import { Command } from "commander";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { ONCE } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { CONFLICTS, type ConflictFlags, conflictOption } from "./conflict-flag.ts";
import { type Placement, type PlacingWords, placeAll } from "./placing.ts";

type MvFlags = ClientFlags & ConflictFlags;

const WORDS: PlacingWords = {
  verb: "mv",
  infinitive: "move",
  participle: "moved",
  otherRoot: {
    message: "nothing can be moved from one user's root to another's",
    todo: "Copy it with 'grove get' and 'grove put', then remove it.",
  },
};

/** Makes the parser of `grove mv`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("mv")
      .description(
        "Move or rename files and folders. The last path is the new name, or a folder to move into.",
      )
      .argument("<path...>", "what to move, then where to")
      .addOption(conflictOption("the new name")),
    [
      ["grove mv draft.txt final.txt", "rename"],
      ["grove mv a.txt b.txt archive/", "move into a folder"],
      ["grove mv --on-conflict keep-both a.txt /inbox", "becomes 'a (2).txt' if there is one"],
    ],
  ).action((paths: string[], flags: MvFlags) =>
    host.run("mv", flags, (context) => placeAll(context, paths, WORDS, (item) => move(item, flags))),
  );
}

function move({ cluster, source, targetPath }: Placement, { onConflict }: MvFlags): Promise<Attr> {
  const { root, path } = source;
  return cluster.runAt({ root, path, targetPath }, ONCE, (server) =>
    server.files.rename({ root, path, targetPath, onConflict: CONFLICTS[onConflict] }, server.unary),
  );
}
