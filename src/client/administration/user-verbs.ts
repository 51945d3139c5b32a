// `grove user disable`, `enable` and `end-sessions`: locks users out and lets them in.

import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { canonicalUsername } from "#base/names.ts";
import { withClientFlags } from "#client/connection/client-flags.ts";
import type { CommandHost } from "#client/connection/command-host.ts";
import { type AdministrationFlags, withAdministrationFlags } from "./administration.ts";
import { type Change, decide, type Words } from "./user-state-set.ts";

interface DecisionFlags extends AdministrationFlags {
  readonly reason: string;
  readonly closeShares?: boolean;
}

const LEFT = "it learns of it from the directory when it is back; run this again to be sure";

/** Locks a user out. */
export function disableVerb(host: CommandHost): Command {
  const parser = verb("disable", "Lock a user out: no sign-in, no route, no session, no stream goes on.", [
    ['grove user disable dave@example.com --reason "has left"', "on every node, within 5 s"],
    [
      'grove user disable dave@example.com --reason "stolen" --close-shares',
      "what dave shares is closed as well",
    ],
  ])
    .requiredOption("--reason <text>", "why, for administrators and the audit log; the user is not told")
    .option("--close-shares", "nobody reaches what the user shares either; it goes on otherwise", false);
  return acting(host, parser, (username, { reason, closeShares }) => ({
    change: { disabled: true, reason, closesShares: closeShares === true },
    words: {
      done:
        `${username} is locked out: no sign-ins, no routes; open sessions, streams and begun uploads have ended. ` +
        `The files stay, and what is shared ${closeShares === true ? "is closed too" : "stays shared"}.`,
      left: `sessions that are open there go on until then: ${LEFT}`,
    },
  }));
}

/** Lets a user in again. */
export function enableVerb(host: CommandHost): Command {
  const parser = verb("enable", "Let a user in again who was locked out.", [
    ["grove user enable dave@example.com", "from now on"],
  ]).option("--reason <text>", "why, for administrators and the audit log", "");
  return acting(host, parser, (username, { reason }) => ({
    change: { disabled: false, closesShares: false, reason },
    words: { done: `${username} may sign in again.`, left: `the user is refused there until then: ${LEFT}` },
  }));
}

/** Ends all sessions, and with them all earlier ID tokens. */
export function endSessionsVerb(host: CommandHost): Command {
  const parser = verb(
    "end-sessions",
    "End all sessions of a user; every device has to sign in at the identity provider again.",
    [['grove user end-sessions dave@example.com --reason "laptop lost"', "who has the password comes back"]],
  ).option("--reason <text>", "why, for administrators and the audit log", "");
  return acting(host, parser, (username, { reason }) => ({
    change: { tokensFromMs: BigInt(systemClock.wallMs()), ...(reason === "" ? {} : { reason }) },
    words: {
      done: `All sessions of ${username} have ended, and no device comes back without a new sign-in.`,
      left: `sessions that are open there go on until then: ${LEFT}`,
    },
  }));
}

function verb(name: string, description: string, examples: readonly (readonly [string, string])[]): Command {
  return withAdministrationFlags(
    withClientFlags(
      new Command(name)
        .description(`${description} For administrators.`)
        .argument("<user>", "e-mail address"),
      examples,
    ),
  );
}

function acting(
  host: CommandHost,
  parser: Command,
  orderOf: (username: string, flags: DecisionFlags) => { readonly change: Change; readonly words: Words },
): Command {
  return parser.action((user: string, flags: DecisionFlags) =>
    host.run(`user ${parser.name()}`, flags, (context) => {
      const username = canonicalUsername(user);
      return decide(context, flags, { username, ...orderOf(username, flags) });
    }),
  );
}
