// `grove user list` and `show`: the users with decisions, and each server's state of one user.

import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { canonicalUsername } from "#base/names.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { withClientFlags } from "#client/connection/client-flags.ts";
import type { CommandHost } from "#client/connection/command-host.ts";
import { EXIT } from "#client/terminal/exit-codes.ts";
import { localTime } from "#client/terminal/local-time.ts";
import type { UserState } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { Administration, type AdministrationFlags, withAdministrationFlags } from "./administration.ts";
import { handOverJson, handOverText } from "./hand-over-text.ts";

type Page = { readonly states: readonly UserState[]; readonly more: boolean };

/** Lists decisions. */
export function listVerb(host: CommandHost): Command {
  return withAdministrationFlags(
    withClientFlags(
      new Command("list")
        .summary("List who is locked out or removed, and whose root is handed over")
        .description(
          "List the users about whom there is a decision: who is locked out or removed, and whose root is handed over, since when, by whom and why. For administrators.",
        )
        .option("--all", "also those who were let in again", false),
      [["grove user list", "who is locked out"]],
    ),
  ).action((flags: AdministrationFlags & { all: boolean }) =>
    host.run("user list", flags, async (context) => {
      const states = (await allStates(context, flags)).filter(
        (state) => state.disabled || inForce(state).length > 0 || flags.all,
      );
      if (context.isJson) await context.printJson({ users: states.map(jsonOf) });
      else if (states.length === 0) await context.print("Nobody is locked out, and no root is handed over.");
      else await context.print(...states.flatMap(linesOf));
    }),
  );
}

/** Shows one user at every server. */
export function showVerb(host: CommandHost): Command {
  return withAdministrationFlags(
    withClientFlags(
      new Command("show")
        .summary("Show what each server knows of a user")
        .description(
          "Show what each server knows of a user: locked out or not, and open sessions. For administrators.",
        )
        .argument("<user>", "e-mail address"),
      [["grove user show dave@example.com", "whether it holds everywhere"]],
    ),
  ).action((user: string, flags: AdministrationFlags) =>
    host.run("user show", flags, (context) => show(context, flags, canonicalUsername(user))),
  );
}

async function show(context: ClientContext, flags: AdministrationFlags, username: string): Promise<number> {
  const administration = await Administration.open(context, flags);
  try {
    const nodes = await administration.nodes();
    const directory = (await administration.hasDirectory())
      ? [await administration.onDirectory((client, options) => client.getUserStates({ username }, options))]
      : [];
    const answers = await administration.onNodes(nodes, (files, options) =>
      files.listUserStates({ username }, options),
    );
    const rows = [
      ...directory.map((answer) => ({ ...answer, state: answer.value?.states[0], sessions: undefined })),
      ...answers.map((answer) => ({
        ...answer,
        state: answer.value?.states[0],
        sessions: answer.value?.sessions,
      })),
    ];
    if (context.isJson) {
      await context.printJson({
        username,
        servers: rows.map(({ name, state, sessions, problem }) => ({
          name,
          ...(problem === undefined ? {} : { problem }),
          ...(sessions === undefined ? {} : { sessions }),
          state: state === undefined ? null : jsonOf(state),
        })),
      });
    } else {
      const width = Math.max(...rows.map(({ name }) => name.length));
      const latest = rows
        .flatMap(({ state }) => state ?? [])
        .reduce<UserState | undefined>(
          (a, b) => (a === undefined || b.version > a.version ? b : a),
          undefined,
        );
      await context.print(
        ...(latest === undefined ? [`${username} may sign in; nothing was ever decided.`] : linesOf(latest)),
        ...rows.map(({ name, state, sessions, problem }) => {
          const open = sessions === undefined ? "" : `, ${sessions} open session${sessions === 1 ? "" : "s"}`;
          const text = problem ?? `${state?.disabled === true ? "locked out" : "may sign in"}${open}`;
          return `  ${name.padEnd(width)}  ${text}`;
        }),
      );
    }
    return rows.every(({ value }) => value !== undefined) ? EXIT.ok : EXIT.network;
  } finally {
    administration.close();
  }
}

/** The decisions of the directory, or of the nodes where no directory answers. */
async function allStates(context: ClientContext, flags: AdministrationFlags): Promise<UserState[]> {
  const administration = await Administration.open(context, flags);
  try {
    if ((await administration.hasDirectory()) && flags.nodes === undefined) {
      return await allPages(async (after) => {
        const { value, error } = await administration.onDirectory((client, options) =>
          client.getUserStates({ after }, options),
        );
        if (value === undefined) throw error;
        return value;
      });
    }
    const latest = new Map<string, UserState>();
    for (const node of await administration.nodes()) {
      const states = await allPages(async (after) => {
        const [answer] = await administration.onNodes([node], (files, options) =>
          files.listUserStates({ after }, options),
        );
        if (answer?.value === undefined) throw answer?.error;
        return answer.value;
      });
      for (const state of states) {
        if (state.version > (latest.get(state.username)?.version ?? 0n)) latest.set(state.username, state);
      }
    }
    return [...latest.values()].toSorted((a, b) => (a.username < b.username ? -1 : 1));
  } finally {
    administration.close();
  }
}

async function allPages(read: (after: string) => Promise<Page>): Promise<UserState[]> {
  const states: UserState[] = [];
  for (let page: Page | undefined; page === undefined || (page.more && page.states.length > 0); ) {
    page = await read(states.at(-1)?.username ?? "");
    states.push(...page.states);
  }
  return states;
}

function linesOf(state: UserState): string[] {
  const what = isRetired(state)
    ? state.removeAtMs > BigInt(systemClock.wallMs())
      ? `removed; the files are kept until ${localTime(state.removeAtMs)}`
      : "removed; the address is retired"
    : state.disabled
      ? `locked out${state.closesShares ? ", shares closed" : ""}`
      : state.tokensFromMs > 0n
        ? "may sign in; sessions were ended"
        : state.handOvers.length > 0
          ? "may sign in"
          : "may sign in again";
  const why = state.reason === "" ? "" : `: ${state.reason}`;
  return [
    `${state.username}  ${what}`,
    `  since ${localTime(state.setAtMs)}, by ${state.setBy}${why}`,
    ...inForce(state).map((handOver) => `  ${handOverText(handOver, handOver.to)}`),
  ];
}

function isRetired({ removeAtMs, released }: UserState): boolean {
  return removeAtMs > 0n && !released;
}

function inForce({ handOvers }: UserState): UserState["handOvers"] {
  return handOvers.filter(({ untilMs }) => untilMs > BigInt(systemClock.wallMs()));
}

function jsonOf(state: UserState): Record<string, unknown> {
  const { username, disabled, closesShares, version, reason, setBy, setAtMs, tokensFromMs } = state;
  return {
    username,
    disabled,
    closes_shares: closesShares,
    version,
    reason,
    set_by: setBy,
    set_at_ms: setAtMs,
    tokens_from_ms: tokensFromMs,
    ...(state.removeAtMs === 0n ? {} : { remove_at_ms: state.removeAtMs, released: state.released }),
    hand_overs: state.handOvers.map(handOverJson),
  };
}
