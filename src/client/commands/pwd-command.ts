// The verb `pwd`: prints the folder that relative paths start from.
import { Command } from "commander";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { formatRemotePath } from "#client/connection/remote-path.ts";

/** Makes the parser of `grove pwd`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(new Command("pwd").description("Print the folder that relative paths start from."), [
    ["grove pwd", "such as /docs, or alice@example.com:/plans"],
  ]).action((flags: ClientFlags) =>
    host.run("pwd", flags, async (context) => {
      const { current } = await context.place.read();
      if (context.isJson) await context.printJson(current);
      else await context.print(formatRemotePath(current));
    }),
  );
}
