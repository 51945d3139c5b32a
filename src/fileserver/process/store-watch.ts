// Searches a node's store for damage and drift while it serves.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { RecountSettings } from "#storage/contract/recount-types.ts";
import type { ScrubSettings } from "#storage/contract/scrub-types.ts";
import type { Storage } from "#storage/contract/storage.ts";

/** How long a node serves before its scrub and its recount continue. */
export const PASS_START_DELAY_MS = 5_000;

/** The store, and the rates of its passes; undefined for never. */
export interface Watched {
  readonly id: string;
  readonly scrub?: ScrubSettings | undefined;
  readonly recount?: RecountSettings | undefined;
}

/** Raises damage as an alert (D11), and searches for damage and drift while the node serves. */
export function watchStore(
  { id, scrub, recount }: Watched,
  { storage, clock, log }: { readonly storage: Storage; readonly clock: Clock; readonly log: Logger },
): () => void {
  const alert = `corruption:${id}`;
  storage.onDamage((found) => log.error("corruption", { alert, ...found }));
  const { count } = storage.damagedFiles();
  if (count > 0) log.error("corruption", { alert, problem: "found earlier", files: count });
  // Callers that waited for the start come first.
  return clock.after(PASS_START_DELAY_MS, () => {
    if (scrub !== undefined) storage.startScrub(scrub);
    if (recount !== undefined) storage.startRecount(recount);
  });
}
