// The verb `share`: lets other users read and write in a part of one's files.
import { Command } from "commander";
import { type ClientFlags, withClientFlags } from "./client-flags.ts";
import { type CommandHost, processHost } from "./command-host.ts";
import { inodesText, runShare } from "./share-call.ts";

/** Makes the parser of `grove share`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("share")
      .description(
        "Let other users read and write a file or a folder of yours, with all that is and will be in it. What they put there is yours and counts in your quota; only you can delete.",
      )
      .argument("<path>", "a file or folder of yours")
      .argument("<user...>", "e-mail addresses; a user who is new here finds it after signing in"),
    [
      ["grove share docs bob@example.com", "bob then lists it with: grove ls you@example.com:/docs"],
      ["grove share / bob@example.com carol@example.com", "all you have, with two others"],
      ["grove stat docs", "whom it is shared with"],
    ],
  ).action((path: string, users: string[], flags: ClientFlags) =>
    host.run("share", flags, (context) =>
      runShare(context, "share", { path, users }, ({ user, place, owner, affectedInodes }) =>
        affectedInodes === 0n
          ? [`${place.path} was shared with ${user} already.`]
          : [
              `Shared ${place.path} with ${user}: ${inodesText(affectedInodes)}.`,
              `${user} finds it as ${owner}:${place.path}; what is put there counts in your quota.`,
            ],
      ),
    ),
  );
}
