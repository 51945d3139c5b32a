// Numbers of roots, given out once for the whole cluster, so that inode numbers stay when a root moves (D19).

import { GroveError } from "#base/errors.ts";
import { CLUSTER_ROOT_NUMBERS_FROM, ROOT_NUMBER_MAX } from "#base/limits.ts";
import { putSetting, setting } from "#metaserver/sql/settings.ts";
import { type Plan } from "#metaserver/sql/sql-plan.ts";
import type { HeldRoot } from "./directory.ts";

/** A setting, since a new table would shut out every MetaServer and console of the version before. */
const KEY = "root_number_next";

/** Takes the next number. A claim whose answer was lost takes another one. Throws OVERLOADED without any. */
export function* takeRootNumber(): Plan<number> {
  const number = yield* nextNumber();
  if (number > ROOT_NUMBER_MAX) {
    throw new GroveError("OVERLOADED", "this cluster has given out all of its root numbers");
  }
  yield* putNext(number + 1);
  return number;
}

/** Keeps the numbers of listed roots from being given out again by a store that was lost or restored. */
export function* noteRootNumbers(roots: readonly Pick<HeldRoot, "number">[]): Plan<void> {
  const highest = roots.reduce((most, { number = 0 }) => Math.max(most, number), 0);
  if (highest < CLUSTER_ROOT_NUMBERS_FROM || highest > ROOT_NUMBER_MAX) return;
  if (highest >= (yield* nextNumber())) yield* putNext(highest + 1);
}

function* nextNumber(): Plan<number> {
  return Math.max(CLUSTER_ROOT_NUMBERS_FROM, Number((yield* setting(KEY)) ?? 0));
}

function* putNext(number: number): Plan<void> {
  yield* putSetting(KEY, String(number));
}
