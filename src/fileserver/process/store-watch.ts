// What a node looks for in its store while it serves: damage and drift.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { RecountSettings } from "#storage/contract/recount-types.ts";
import type { ScrubSettings } from "#storage/contract/scrub-types.ts";
import type { Storage } from "#storage/contract/storage.ts";

/** How long a node serves before its scrub and its recount go on. */
export const PASS_START_DELAY_MS = 5_000;

/** Whose store it is, and how fast it is gone through; undefined for never. */
export interface Watched {
  readonly id: string;
  readonly scrub?: ScrubSettings | undefined;
  readonly recount?: RecountSettings | undefined;
}

/** Has damage told as the alert that it is (D11), and damage and drift looked for while the node serves. */
export function watchStore(
  { id, scrub, recount }: Watched,
  { storage, clock, log }: { readonly storage: Storage; readonly clock: Clock; readonly log: Logger },
): () => void {
  const alert = `corruption:${id}`;
  storage.onDamage((found) => log.error("corruption", { alert, ...found }));
  const { count } = storage.damagedFiles();
  if (count > 0) log.error("corruption", { alert, problem: "found earlier", files: count });
  // Whoever has waited for the start comes first.
  return clock.after(PASS_START_DELAY_MS, () => {
    if (scrub !== undefined) storage.startScrub(scrub);
    if (recount !== undefined) storage.startRecount(recount);
  });
}
