// The verb `cd`: changes the folder that relative paths start from.
import { Command } from "commander";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { formatRemotePath, HOME, type RemotePath } from "#client/connection/remote-path.ts";

/** Makes the parser of `grove cd`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("cd")
      .description("Change the folder that relative paths start from; later commands start there too.")
      .argument("[path]", "a folder; '-' is the one before, none is your own root", "/"),
    [
      ["grove cd docs", "then 'grove ls' lists docs"],
      ["grove cd alice@example.com:/plans", "a folder that alice shares with you"],
      ["grove cd -", "back to where you were"],
    ],
  ).action((typed: string, flags: ClientFlags, self: Command) =>
    host.run("cd", flags, async (context) => {
      const { current, previous } = await context.place.read();
      let wanted: RemotePath = HOME;
      if (typed === "-") wanted = previous;
      else if (self.args.length > 0) wanted = await context.resolve(typed);
      const cluster = await context.cluster();
      const attr = await cluster.runAt(wanted, SHORT, (server) =>
        server.files.changeDir({ root: wanted.root, path: wanted.path }, server.unary),
      );
      const place = { root: wanted.root, path: attr.path };
      await context.place.write(place, current);
      if (context.isJson) await context.printJson(place);
      else if (typed === "-") await context.print(formatRemotePath(place));
    }),
  );
}
