// The verb `unshare`: ends grants of `share`.
import { Command } from "commander";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { inodesText, runShare } from "#client/connection/share-call.ts";

/** Makes the parser of `grove unshare`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("unshare")
      .description(
        "End the sharing of a file or folder of yours with other users, for everything in it. In a folder that goes on being shared it takes that part out. Transfers of theirs that run end too; what they have put there stays.",
      )
      .argument("<path>", "a file or folder of yours")
      .argument("<user...>", "e-mail addresses"),
    [
      ["grove unshare docs bob@example.com", "bob can no longer see it"],
      ["grove unshare docs/private bob@example.com", "takes that part out, when docs is shared with bob"],
      ["grove unshare / bob@example.com", "ends all that you share with bob"],
    ],
  ).action((path: string, users: string[], flags: ClientFlags) =>
    host.run("unshare", flags, (context) =>
      runShare(context, "unshare", { path, users }, ({ user, place, affectedInodes }) => [
        affectedInodes === 0n
          ? `${place.path} was not shared with ${user}; nothing has changed.`
          : `${place.path} is no longer shared with ${user}: ${inodesText(affectedInodes)}.`,
      ]),
    ),
  );
}
