// `grove user`: the verbs of administrators about one user, one module and one row here for each.
import { Command } from "commander";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { handOverVerb } from "./hand-over-verb.ts";
import { removeVerb } from "./remove-verb.ts";
import { listVerb, showVerb } from "./user-list-verbs.ts";
import { disableVerb, enableVerb, endSessionsVerb } from "./user-verbs.ts";

/** Makes the parser of one verb. */
export type UserVerb = (host: CommandHost) => Command;

/** The verbs, in the order of the help. */
const VERBS: readonly UserVerb[] = [
  listVerb,
  showVerb,
  disableVerb,
  enableVerb,
  endSessionsVerb,
  handOverVerb,
  removeVerb,
];

/** Lines of the examples below the help, each verb's most usual one. */
const EXAMPLES: readonly (readonly [line: string, what: string])[] = [
  ["grove user list", "who is locked out, by whom and why"],
  ['grove user disable dave@example.com --reason "has left"', "on every node, within 5 s"],
  ["grove user enable dave@example.com", "lets dave in again"],
  ["grove user end-sessions dave@example.com", "every device has to sign in again"],
  [
    'grove user hand-over dave@example.com --to carol@example.com --reason "has left"',
    "carol reads and writes all of dave's",
  ],
  ['grove user remove dave@example.com --reason "has left"', "the files are deleted in 30 days"],
];

/** Makes the parser of `grove user` with its verbs. */
export function command(host: CommandHost = processHost()): Command {
  const width = Math.max(0, ...EXAMPLES.map(([line]) => line.length));
  const examples = EXAMPLES.map(([line, what]) => `  ${line.padEnd(width)}   ${what}`);
  const group = new Command("user")
    .summary("Lock users out, and let them in again")
    .description(
      "Show the cluster's users, lock one out, let one in again, and hand a root over; for administrators.",
    )
    .addHelpText("after", `\nExamples:\n${examples.join("\n")}`);
  for (const verb of VERBS) group.addCommand(verb(host));
  return group;
}
