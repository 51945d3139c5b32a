// The verb `share`: grants other users a part of one's files, and lists the grants.
import { Command } from "commander";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { inodesText, runShare } from "#client/connection/share-call.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { listShares } from "./share-list.ts";

interface ShareFlags extends ClientFlags {
  readonly list?: boolean;
}

/** Makes the parser of `grove share`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("share")
      .description(
        "Let other users read and write a file or a folder of yours, with all that is and will be in it. What they put there is yours and counts in your quota; only you can delete.",
      )
      .argument("[path]", "a file or folder of yours")
      .argument("[user...]", "e-mail addresses; a user who is new here finds it after signing in")
      .option(
        "-l, --list",
        "list what you share, there and below, and what was taken out of it with 'grove unshare'",
      ),
    [
      ["grove share docs bob@example.com", "bob then lists it with: grove ls you@example.com:/docs"],
      ["grove share / bob@example.com carol@example.com", "all you have, with two others"],
      ["grove share --list", "all that you share, and with whom"],
      ["grove stat docs", "who else gets into docs, by whatever share"],
    ],
  ).action((path: string | undefined, users: string[], flags: ShareFlags) =>
    host.run("share", flags, async (context) => {
      if (flags.list === true) {
        await listShares(context, { path: path ?? "/", users });
        return;
      }
      if (path === undefined || users.length === 0) {
        throw new ClientError("USAGE", path === undefined ? "what is to be shared?" : "share it with whom?", {
          todo: "First the path, then who: grove share PATH USER. 'grove share --list' shows what you share.",
        });
      }
      await runShare(context, "share", { path, users }, ({ user, place, owner, affectedInodes }) =>
        affectedInodes === 0n
          ? [`${place.path} was shared with ${user} already.`]
          : [
              `Shared ${place.path} with ${user}: ${inodesText(affectedInodes)}.`,
              `${user} finds it as ${owner}:${place.path}; what is put there counts in ${place.root === "" ? "your quota" : `the quota of ${owner}`}.`,
            ],
      );
    }),
  );
}
