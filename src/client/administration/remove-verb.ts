// `grove user remove`: locks a user out and deletes the files after 30 days; undo; freeing the address.

import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { REMOVAL_GRACE_MS } from "#base/limits.ts";
import { canonicalUsername } from "#base/names.ts";
import { withClientFlags } from "#client/connection/client-flags.ts";
import type { CommandHost } from "#client/connection/command-host.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import { type AdministrationFlags, withAdministrationFlags } from "./administration.ts";
import { type Change, decide, type KnownState } from "./user-state-set.ts";

interface RemoveFlags extends AdministrationFlags {
  readonly reason?: string;
  readonly closeShares: boolean;
  readonly withoutExport: boolean;
  readonly undo: boolean;
  readonly release: boolean;
}

type Order = Pick<Parameters<typeof decide>[2], "change" | "words">;

/** The same again is refused, as done already. */
const LEFT = "it learns of it from the directory when it is back";

/** Removes a user. */
export function removeVerb(host: CommandHost): Command {
  const parser = withAdministrationFlags(
    withClientFlags(
      new Command("remove")
        .summary("Lock a user out, and delete the files after 30 days")
        .description(
          "Lock a user out, and delete the files after 30 days, with all that others share with the address. The address is retired: it " +
            "takes no sign-ins and no shares until it is released. For administrators.",
        )
        .argument("<user>", "e-mail address")
        .option("--reason <text>", "why, for administrators and the audit log; the user is not told")
        .option("--close-shares", "nobody reaches what the user shares from now on", false)
        .option("--without-export", "nobody needs the files: the root is handed over to nobody", false)
        .option("--undo", "bring the user back, within the 30 days", false)
        .option("--release", "free the address of a user whose files are gone", false),
      [
        ['grove user hand-over dave@example.com --to carol@example.com --reason "has left"', "first"],
        ['grove user remove dave@example.com --reason "has left"', "the files are deleted in 30 days"],
        ["grove user remove dave@example.com --undo", "nothing has happened"],
      ],
    ),
  );
  return parser.action((user: string, flags: RemoveFlags) =>
    host.run("user remove", flags, (context) => {
      const username = canonicalUsername(user);
      const order = flags.undo
        ? undoing(username)
        : flags.release
          ? releasing(username)
          : removing(username, flags);
      return decide(context, flags, { username, ...order });
    }),
  );
}

function removing(username: string, flags: RemoveFlags): Order {
  const { reason = "" } = flags;
  if (reason.trim() === "") {
    throw new ClientError("USAGE", "removing a user needs a reason", { todo: "Say --reason TEXT" });
  }
  const dueAtMs = systemClock.wallMs() + REMOVAL_GRACE_MS;
  const change = (known: KnownState): Change => {
    if (known.removeAtMs > 0n && !known.released) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `${username} was removed already; the files are kept until ${localTime(known.removeAtMs)}`,
      );
    }
    const nowMs = BigInt(systemClock.wallMs());
    if (!known.handOvers.some(({ untilMs }) => untilMs > nowMs) && !flags.withoutExport) {
      throw new ClientError("USAGE", `nobody has the files of ${username}`, {
        todo:
          `Hand the root over first: 'grove user hand-over ${username} --to SOMEBODY --reason TEXT', who takes it home by ` +
          `'grove get -r ${username}:/ FOLDER'; or say --without-export`,
      });
    }
    return {
      disabled: true,
      closesShares: flags.closeShares,
      reason,
      removeAtMs: BigInt(dueAtMs),
      released: false,
      removedBeforeMs: known.released ? known.removeAtMs : 0n,
    };
  };
  return {
    change,
    words: {
      done:
        `${username} is removed: no sign-ins, no routes; open sessions, streams and begun uploads have ended. The files are kept until ` +
        `${localTime(dueAtMs)} and deleted then, with all that others share with ${username}; --undo brings the user back until then. ` +
        "The address is retired.",
      left: `nothing of it holds there until then: ${LEFT}`,
    },
  };
}

function undoing(username: string): Order {
  const change = ({ removeAtMs, released, removedBeforeMs: beforeMs }: KnownState): Change => {
    if (removeAtMs === 0n || released) {
      throw new GroveError("BAD_ARGUMENT", `${username} is not being removed`);
    }
    const removal = { removeAtMs: beforeMs, released: beforeMs > 0n, removedBeforeMs: 0n };
    return { disabled: false, closesShares: false, reason: "", ...removal };
  };
  const done = `${username} may sign in again, and finds everything as it was.`;
  return { change, words: { done, left: `the user is refused there until then: ${LEFT}` } };
}

function releasing(username: string): Order {
  const change = ({ removeAtMs, released }: KnownState): Change => {
    if (removeAtMs === 0n || released) throw new GroveError("BAD_ARGUMENT", `${username} is not retired`);
    // Whoever comes next is another person.
    const person = { issuer: "", subject: "" };
    return { disabled: false, closesShares: false, reason: "", released: true, handOvers: [], ...person };
  };
  return {
    change,
    words: {
      done:
        `${username} is free: whoever comes with it begins with an empty root, and is shared nothing of before. Where that is another person ` +
        "than before, 'grove user rebind' says so to the cluster.",
      left: `the address is refused there until then: ${LEFT}`,
    },
  };
}
