// The verb `notices`: turns notices about one's own quota, trash and sign-ins off and on.
import { Command } from "commander";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";

/** Makes the parser of `grove notices`. */
export function command(host: CommandHost = processHost()): Command {
  const root = new Command("notices")
    .description(
      "Turn notices off or on: mail to you when your quota is 80 %, 95 % or all used, before old trash is deleted, and after a sign-in from a new place. " +
        "Your operator decides whether the cluster sends any.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  grove notices show   whether you get them\n  grove notices off    no more of them",
    )
    .action(() => root.help());
  const verb = (name: string, summary: string, run: (context: ClientContext) => Promise<void>): void => {
    withClientFlags(root.command(name).description(summary), [[`grove notices ${name}`, summary]]).action(
      (flags: ClientFlags) => host.run(`notices ${name}`, flags, run),
    );
  };
  verb("show", "Say whether you get notices.", async (context) => {
    const isOff = await (await context.cluster()).ask((router) => router.noticesOff());
    await tell(context, isOff);
  });
  verb("off", "Send me no more notices.", (context) => set(context, true));
  verb("on", "Send me notices again.", (context) => set(context, false));
  return root;
}

async function set(context: ClientContext, isOff: boolean): Promise<void> {
  await (await context.cluster()).ask((router) => router.setNoticesOff(isOff));
  await tell(context, isOff);
}

async function tell(context: ClientContext, isOff: boolean): Promise<void> {
  if (context.isJson) return context.printJson({ notices: isOff ? "off" : "on" });
  await context.print(
    isOff
      ? "Notices are off: nobody writes to you about your quota, trash or sign-ins."
      : "Notices are on: you get them where your operator sends any.",
  );
}
