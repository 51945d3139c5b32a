// The verb `browser`: lists the browsers in which the user is signed in at doors, and ends those sessions.
import { Command } from "commander";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { ClientError, withHint } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import type { BrowserSession } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

interface EndFlags extends ClientFlags {
  readonly all?: boolean;
}

/** Makes the parser of `grove browser`. */
export function command(host: CommandHost = processHost()): Command {
  const root = new Command("browser")
    .description(
      "List the browsers in which you are signed in at a door of the cluster, and sign them out. " +
        "Needs a sign-in of the last ten minutes. Sessions of terminals are those of 'grove sessions'.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  grove browser list        in which browsers you are signed in\n  grove browser end --all   sign all of them out",
    )
    .action(() => root.help());
  withClientFlags(
    root
      .command("list")
      .description("List them: which browser, from where, since when, and when it was used last (to 5 min)."),
    [["grove browser list", "in which browsers you are signed in"]],
  ).action((flags: ClientFlags) => host.run("browser list", flags, list));
  withClientFlags(
    root
      .command("end")
      .description("Sign one out, or all: it opens nothing more, and what it is doing stops within seconds.")
      .argument("[id]", "of the session, as 'grove browser list' shows it")
      .option("--all", "every browser"),
    [
      ["grove browser end gz5nq2dw7o3x", "when a device is lost"],
      ["grove browser end --all", "every browser"],
    ],
  ).action((id: string | undefined, flags: EndFlags) =>
    host.run("browser end", flags, (context) => end(context, id, flags.all === true)),
  );
  return root;
}

async function list(context: ClientContext): Promise<void> {
  const found = await (await context.cluster()).ask((router) => router.listBrowserSessions());
  if (context.isJson) return context.printJson({ browser_sessions: found.map(jsonOf) });
  if (found.length === 0) context.note("You are signed in with no browser.");
  await context.print(...found.flatMap(linesOf));
}

async function end(context: ClientContext, id: string | undefined, isAll: boolean): Promise<void> {
  if ((id === undefined) !== isAll)
    throw new ClientError("USAGE", "name the id of one session, or --all", {
      todo: "'grove browser list' shows them.",
    });
  const { router } = await context.cluster();
  const ended = await router
    .endBrowserSessions(id)
    .catch(withHint("BAD_ARGUMENT", "'grove browser list' shows them."));
  if (context.isJson) return context.printJson({ ended: ended.map(jsonOf) });
  if (ended.length === 0) return context.print("No browser was signed in.");
  await context.print(
    ...ended.map((session) => `Signed out ${nameOf(session)}; what it was doing stops within seconds.`),
  );
}

function linesOf(session: BrowserSession): string[] {
  const { id, address, beganMs, lastUsedMs, endsMs } = session;
  const from = address === "" ? "from a place that was not kept" : `from ${address}`;
  return [
    `${id}  ${nameOf(session)}, ${from}`,
    `  since ${localTime(beganMs)}, last used ${localTime(lastUsedMs)}, ends ${localTime(endsMs)}`,
  ];
}

function nameOf({ browser }: BrowserSession): string {
  return browser === "" ? "a browser without a name" : browser;
}

function jsonOf(session: BrowserSession): Record<string, unknown> {
  const { id, browser, address, beganMs, lastUsedMs, endsMs } = session;
  const timeOf = (ms: bigint): string => new Date(Number(ms)).toISOString();
  return {
    id,
    browser: browser === "" ? null : browser,
    address: address === "" ? null : address,
    began_at: timeOf(beganMs),
    last_used_at: timeOf(lastUsedMs),
    ends_at: timeOf(endsMs),
  };
}
