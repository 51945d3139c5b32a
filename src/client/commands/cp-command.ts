// The verb `cp`: copies on the cluster, without transferring bytes through this machine.
import { Command } from "commander";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { ONCE } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { attrOf, isFolder } from "#client/connection/listing.ts";
import { formatRemotePath } from "#client/connection/remote-path.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { CONFLICTS, type ConflictFlags, conflictOption } from "./conflict-flag.ts";
import { type Placement, type PlacingWords, placeAll } from "./placing.ts";

interface CpFlags extends ClientFlags, ConflictFlags {
  readonly recursive?: boolean;
}

const WORDS: PlacingWords = {
  verb: "cp",
  infinitive: "copy",
  participle: "copied",
  otherRoot: {
    message: "nothing can be copied on the cluster from one user's root to another's",
    todo: "Copy it with 'grove get' and 'grove put'.",
  },
};

/** Makes the parser of `grove cp`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("cp")
      .description(
        "Copy files and folders on the cluster: nothing goes through this machine, and what is stored is shared, but it counts in full " +
          "in the quota. The last path is the new name, or a folder to copy into. A folder appears when all of it is there.",
      )
      .argument("<path...>", "what to copy, then where to")
      .option("-r, --recursive", "folders with all that is in them")
      .addOption(conflictOption("the new name")),
    [
      ["grove cp plan.txt plan-2.txt", "a copy beside it"],
      ["grove cp -r photos /archive", "a folder with all that is in it, into another"],
      ["grove cp --on-conflict keep-both a.txt /inbox", "becomes 'a (2).txt' if there is one"],
    ],
  ).action((paths: string[], flags: CpFlags) =>
    host.run("cp", flags, (context) => placeAll(context, paths, WORDS, (item) => copy(item, flags))),
  );
}

async function copy({ cluster, source, targetPath }: Placement, flags: CpFlags): Promise<Attr> {
  if (flags.recursive !== true && isFolder(await attrOf(cluster, source))) {
    throw new ClientError("USAGE", "is a folder", {
      about: formatRemotePath(source),
      todo: "Add -r to copy it with all that is in it.",
    });
  }
  const { root, path } = source;
  return cluster.runAt({ root, path, targetPath }, ONCE, (server) =>
    // A large folder takes long, so the call has no time limit.
    server.files.copy({ root, path, targetPath, onConflict: CONFLICTS[flags.onConflict] }, server.stream),
  );
}
