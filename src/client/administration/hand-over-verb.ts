// `grove user hand-over`: gives one user's whole root to another for a time, and ends that.

import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { canonicalUsername } from "#base/names.ts";
import { untilSeconds } from "#base/until-text.ts";
import { withClientFlags } from "#client/connection/client-flags.ts";
import type { CommandHost } from "#client/connection/command-host.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import { groupNameOf } from "#security/policy/group.ts";
import { type AdministrationFlags, withAdministrationFlags } from "./administration.ts";
import { handedRights } from "./hand-over-text.ts";
import { type Change, decide, type KnownState } from "./user-state-set.ts";

interface HandOverFlags extends AdministrationFlags {
  readonly to: string;
  readonly reason?: string;
  readonly until: string;
  readonly withDelete: boolean;
  readonly end: boolean;
}

const LEARNS = "it learns of it from the directory when it is back";

/** Hands a root over. */
export function handOverVerb(host: CommandHost): Command {
  const parser = withAdministrationFlags(
    withClientFlags(
      new Command("hand-over")
        .summary("Let another user read and write all of a user's root")
        .description(
          "Let another user read and write all of a user's root, until a moment and for a reason that both of them see. For administrators.",
        )
        .argument("<user>", "e-mail address of whose root it is")
        .requiredOption("--to <user>", "e-mail address of who gets it")
        .option("--reason <text>", "why; both users see it in 'grove roots'")
        .option("--until <when>", '"30d", "Friday 18:00", "2026-12-01 08:00"', "30d")
        .option("--with-delete", "delete too, and the trash; it is read and write otherwise", false)
        .option("--end", "end it now", false),
      [
        [
          'grove user hand-over dave@example.com --to carol@example.com --reason "has left"',
          "for 30 days, on every node",
        ],
        ["grove user hand-over dave@example.com --to carol@example.com --end", "carol's access is over"],
      ],
    ),
  );
  return parser.action((user: string, flags: HandOverFlags) =>
    host.run("user hand-over", flags, (context) => {
      const names = { username: canonicalUsername(user), to: canonicalUsername(flags.to) };
      const order = flags.end ? ending(names) : beginning(names, flags);
      return decide(context, flags, { username: names.username, ...order });
    }),
  );
}

interface Names {
  readonly username: string;
  readonly to: string;
}
type Order = Pick<Parameters<typeof decide>[2], "change" | "group" | "words">;

function beginning({ username, to }: Names, { reason = "", until, withDelete }: HandOverFlags): Order {
  if (username === to) throw new GroveError("BAD_ARGUMENT", "nobody's root is handed over to themselves");
  if (reason.trim() === "") {
    throw new ClientError("USAGE", "handing a root over needs a reason", {
      todo: "Say --reason TEXT; both users see it",
    });
  }
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const untilMs = momentMs(until, timeZone);
  const handOver = { to, mayDelete: withDelete, reason, untilMs: BigInt(untilMs) };
  const change = (known: KnownState): Change => ({
    handOvers: [
      ...inForce(known).filter((other) => other.to !== to),
      { $typeName: "grove.v1.HandOver", ...handOver, setBy: "", setAtMs: 0n },
    ],
  });
  const rights = handedRights({ mayDelete: withDelete });
  return {
    change,
    group: groupNameOf(to),
    words: {
      done:
        `${to} may ${rights} all of the root of ${username} until ${localTime(untilMs)}. What ${to} writes there counts for the quota ` +
        `of ${username}. Both see it in 'grove roots'; --end ends it.`,
      left: `${to} gets no further there until then: ${LEARNS}; run this again to be sure`,
    },
  };
}

function ending({ username, to }: Names): Order {
  const change = (known: KnownState): Change => {
    const others = inForce(known).filter((other) => other.to !== to);
    if (others.length === inForce(known).length) {
      throw new GroveError("BAD_ARGUMENT", `the root of ${username} is not handed over to ${to}`);
    }
    return { handOvers: others };
  };
  return {
    change,
    words: {
      done: `The root of ${username} is no longer handed over to ${to}; what ${to} wrote there stays.`,
      // The same again is refused, as done already.
      left: `${to} still reaches the root there until then: ${LEARNS}`,
    },
  };
}

/** Hand-overs that have not expired; later decisions leave out the expired ones. */
function inForce({ handOvers }: KnownState): KnownState["handOvers"] {
  return handOvers.filter(({ untilMs }) => untilMs > BigInt(systemClock.wallMs()));
}

function momentMs(text: string, timeZone: string): number {
  const until = untilSeconds(text, { nowMs: systemClock.wallMs(), timeZone });
  if (typeof until === "number") return until * 1_000;
  throw new ClientError("USAGE", `--until "${text}": ${until.problem}`);
}
