// Sizes of roots, which nodes tell when a command asks for them: before roots move, their room is known (D27).
import { GroveError } from "#base/errors.ts";
import { dropSetting, putSetting, setting } from "#metaserver/sql/settings.ts";
import { all, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import type { NodeCaller } from "./node-caller.ts";
import { type Moment, requireCaller } from "./node-commands.ts";
import type { RootSizesOfNode, RootSizesPage } from "./root-move.ts";

/** Settings, since a new table would shut out every MetaServer and console of the version before. */
const WANTED = "root_sizes_wanted";
const TOLD_PREFIX = "root_sizes_told:";
const PAGE_PREFIX = "root_sizes:";

/** How long nodes are asked after the question. */
const ASKED_FOR_MS = 300_000;
/** Pages of one node: a million roots. */
const PAGES_MAX = 5_000;

/** Asks all nodes that run, and returns the question's number. */
export function* wantRootSizes(now: Pick<Moment, "wallMs">): Plan<number> {
  const before = Number((yield* setting(WANTED)) ?? "0");
  const question = Math.max(Math.trunc(now.wallMs), before + 1);
  yield* putSetting(WANTED, String(question));
  return question;
}

/** The question that nodes are to answer now; 0 for none. */
export function* sizesWanted(now: Pick<Moment, "wallMs">): Plan<number> {
  const question = Number((yield* setting(WANTED)) ?? "0");
  return now.wallMs - question > ASKED_FOR_MS ? 0 : question;
}

/** Keeps a page of a node's answer; the first one replaces all that it told before. */
export function* noteRootSizes(_now: Moment, caller: NodeCaller, told: RootSizesPage): Plan<void> {
  yield* requireCaller(caller);
  const { fsId } = caller;
  const { question, page, isLast, sizes } = told;
  if (page >= PAGES_MAX) throw new GroveError("OVERLOADED", "a node has too many roots to tell their sizes");
  if (page === 0) yield* forgetRootSizes(fsId);
  yield* putSetting(
    `${PAGE_PREFIX}${fsId}:${page}`,
    JSON.stringify(sizes.map(({ owner, bytes }) => [owner, bytes])),
  );
  if (isLast) yield* putSetting(TOLD_PREFIX + fsId, String(question));
}

/** What nodes told last, by node. */
export function* rootSizes(_now?: Pick<Moment, "wallMs">): Plan<RootSizesOfNode[]> {
  const answers = yield* all<{ key: string; value: string }>(
    "SELECT key, value FROM settings WHERE key LIKE ?",
    `${TOLD_PREFIX}%`,
  );
  const nodes: RootSizesOfNode[] = [];
  for (const { key, value } of answers) {
    const fsId = key.slice(TOLD_PREFIX.length);
    const prefix = `${PAGE_PREFIX}${fsId}:`;
    const pages = yield* all<{ value: string }>(
      "SELECT value FROM settings WHERE substr(key, 1, ?) = ?",
      prefix.length,
      prefix,
    );
    const sizes = pages.flatMap((page) => JSON.parse(page.value) as [string, number][]);
    nodes.push({ fsId, question: Number(value), sizes: sizes.map(([owner, bytes]) => ({ owner, bytes })) });
  }
  return nodes.toSorted((a, b) => (a.fsId < b.fsId ? -1 : 1));
}

/** Forgets what a node told. */
export function* forgetRootSizes(fsId: string): Plan<void> {
  const prefix = `${PAGE_PREFIX}${fsId}:`;
  yield* run("DELETE FROM settings WHERE substr(key, 1, ?) = ?", prefix.length, prefix);
  yield* dropSetting(TOLD_PREFIX + fsId);
}
