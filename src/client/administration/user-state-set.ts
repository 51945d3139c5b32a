// Makes one decision about a user at the directory and at every node, with one answer each.
import { systemClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { EXIT } from "#client/terminal/exit-codes.ts";
import type { UserState } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { SetUserStateResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import {
  type AdministeredNode,
  Administration,
  type AdministrationFlags,
  type Answer,
} from "./administration.ts";
import { handOverJson } from "./hand-over-text.ts";

/** The changed fields, on top of the known state of the user. */
export type Change = Partial<
  Pick<
    UserState,
    | "closesShares"
    | "disabled"
    | "handOvers"
    | "issuer"
    | "reason"
    | "released"
    | "removeAtMs"
    | "removedBeforeMs"
    | "subject"
    | "tokensFromMs"
  >
>;

/** The words of the outcome. */
export interface Words {
  /** The first line, where the decision holds at one server or more. */
  readonly done: string;
  /** The meaning of a server that did not answer. */
  readonly left: string;
}

type Plain = Omit<UserState, "$typeName" | "$unknown">;
/** The known state of a user when a decision is made. */
export type KnownState = Readonly<Plain>;
type Outcome = Answer<Pick<SetUserStateResponse, "sessionsEnded" | "uploadsDropped">> & {
  readonly later?: Plain;
};

/** Attempts at a decision when another administrator's was newer. */
const ATTEMPTS = 3;

const NOTHING: Plain = {
  username: "",
  disabled: false,
  closesShares: false,
  version: 0n,
  reason: "",
  setBy: "administrator",
  setAtMs: 0n,
  tokensFromMs: 0n,
  issuer: "",
  subject: "",
  handOvers: [],
  removeAtMs: 0n,
  released: false,
  removedBeforeMs: 0n,
};

/** Decides and prints each server's answer. Returns 7 unless all of them hold it. Throws when all refuse. */
export async function decide(
  context: ClientContext,
  flags: AdministrationFlags,
  order: {
    readonly username: string;
    /** The change, or its computation from the known state. */
    readonly change: Change | ((known: KnownState) => Change);
    readonly words: Words;
    /** A group that has to exist, as far as the directory answers. */
    readonly group?: string | undefined;
  },
): Promise<number> {
  const administration = await Administration.open(context, flags);
  try {
    const nodes = await administration.nodes();
    const hasDirectory = await administration.hasDirectory();
    if (hasDirectory && order.group !== undefined) await requireGroup(administration, order.group);
    let known = await latestKnown(administration, { nodes, hasDirectory, username: order.username });
    for (let attempt = 1; ; attempt++) {
      const now = BigInt(systemClock.wallMs());
      const version = known.version >= now ? known.version + 1n : now;
      const change = typeof order.change === "function" ? order.change(known) : order.change;
      const state = { ...known, ...change, username: order.username, version };
      const outcomes = await decideAt(administration, { nodes, hasDirectory, state });
      const newer = outcomes.flatMap(({ later }) => later ?? []);
      const latest = newer.toSorted((a, b) => (a.version > b.version ? -1 : 1))[0];
      if (latest !== undefined && attempt < ATTEMPTS) known = latest;
      else return await tell(context, order, { outcomes, state });
    }
  } finally {
    administration.close();
  }
}

/** Throws BAD_ARGUMENT for a group that the directory does not know; nodes hear of a new one later. */
async function requireGroup(administration: Administration, name: string): Promise<void> {
  const { error } = await administration.onDirectory((client, options) =>
    client.listGroups({ name }, options),
  );
  if (isGroveError(error, "BAD_ARGUMENT")) throw error;
}

interface Servers {
  readonly nodes: readonly AdministeredNode[];
  readonly hasDirectory: boolean;
}

/**
 * The known state of the user, from the directory, or from the nodes where it does not answer. A server that
 * knows a newer state refuses the decision; a node that hangs must not delay the others.
 */
async function latestKnown(
  administration: Administration,
  { nodes, hasDirectory, username }: Servers & { readonly username: string },
): Promise<Plain> {
  const told = hasDirectory
    ? await administration.onDirectory((client, options) => client.getUserStates({ username }, options))
    : undefined;
  const answers =
    told?.value === undefined
      ? await administration.onNodes(nodes, (files, options) => files.listUserStates({ username }, options))
      : [told];
  const states = answers.flatMap(({ value }) => value?.states ?? []);
  return states.reduce<Plain>((a, b) => (b.version > a.version ? b : a), { ...NOTHING, username });
}

async function decideAt(
  administration: Administration,
  { nodes, hasDirectory, state }: Servers & { readonly state: Plain },
): Promise<Outcome[]> {
  const laterOf = (reply: { applied: boolean; state?: UserState | undefined }): { later?: Plain } =>
    reply.applied || reply.state === undefined ? {} : { later: reply.state };
  const asked = administration.onNodes(nodes, (files, options) => files.setUserState({ state }, options));
  const kept = hasDirectory
    ? await administration.onDirectory((client, options) => client.keepUserState({ state }, options))
    : undefined;
  const outcomes = (await asked).map(
    (answer): Outcome => ({ ...answer, ...(answer.value === undefined ? {} : laterOf(answer.value)) }),
  );
  if (kept === undefined) return outcomes;
  const { value, ...rest } = kept;
  const directory: Outcome =
    value === undefined
      ? rest
      : { ...rest, value: { sessionsEnded: 0, uploadsDropped: 0 }, ...laterOf(value) };
  return [directory, ...outcomes];
}

async function tell(
  context: ClientContext,
  { username, words }: { readonly username: string; readonly words: Words },
  { outcomes, state }: { readonly outcomes: readonly Outcome[]; readonly state: Plain },
): Promise<number> {
  const holding = outcomes.filter(({ value, later }) => value !== undefined && later === undefined);
  if (holding.length === 0) throw failureOf(outcomes);
  const isWhole = holding.length === outcomes.length;
  if (context.isJson) {
    await context.printJson({
      username,
      disabled: state.disabled,
      version: state.version,
      ...(state.handOvers.length === 0 ? {} : { hand_overs: state.handOvers.map(handOverJson) }),
      holds_everywhere: isWhole,
      servers: outcomes.map(({ name, address, value, problem, later }) => ({
        name,
        ...(address === "" ? {} : { address }),
        holds: value !== undefined && later === undefined,
        sessions_ended: value?.sessionsEnded ?? 0,
        uploads_dropped: value?.uploadsDropped ?? 0,
        ...(problem === undefined ? {} : { problem }),
      })),
    });
  } else {
    const width = Math.max(...outcomes.map(({ name }) => name.length));
    await context.print(
      words.done,
      ...outcomes.map((outcome) => `  ${outcome.name.padEnd(width)}  ${outcomeText(outcome, words)}`),
    );
  }
  return isWhole ? EXIT.ok : EXIT.network;
}

function outcomeText({ value, problem, later }: Outcome, { left }: Words): string {
  if (later !== undefined) return "knows a newer decision of another administrator, which stays; try again";
  if (value === undefined) return `NOT YET: ${(problem ?? "no answer").replace(/\.$/, "")}; ${left}`;
  const ended = [
    counted(value.sessionsEnded, "session"),
    counted(value.uploadsDropped, "begun upload"),
  ].filter((text) => text !== "");
  return ended.length === 0 ? "holds" : `holds; ${ended.join(" and ")} ended`;
}

function counted(count: number, what: string): string {
  if (count === 0) return "";
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function failureOf(outcomes: readonly Outcome[]): unknown {
  const first = outcomes.find(({ error }) => error !== undefined)?.error;
  return first ?? new ClientError("NETWORK", "no server has taken it");
}
