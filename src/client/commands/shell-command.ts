// The verb `shell`: the other verbs one after another, over one connection, with history and completion.
import { Command } from "commander";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { Shell } from "./shell.ts";

/** Makes the parser of `grove shell`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("shell").description(
      "Type the verbs one after another, without 'grove' and over one connection. Tab completes, 'exit' or Ctrl-D ends. " +
        "Also reads lines from a pipe; the exit code is then that of the last verb that failed.",
    ),
    [
      ["grove shell", "then: cd docs, ls -l, get report.pdf"],
      ["printf 'cd docs\\nls\\n' | grove shell", "the same from a script"],
    ],
  ).action((flags: ClientFlags) => host.run("shell", flags, (context) => new Shell(context, flags).run()));
}
