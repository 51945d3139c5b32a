// What a serving node does about damage: tells it, and looks for it, in passes over all that is stored.
import type { Clock } from "#base/clock.ts";
import { PASS_START_DELAY_MS } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import type { RecountSettings } from "#storage/recount-types.ts";
import type { ScrubSettings } from "#storage/scrub-types.ts";
import type { Storage } from "#storage/storage.ts";

/** Which node this is, and how fast what is stored is looked through; undefined for never. */
interface WatchSettings {
  readonly id: string;
  readonly scrub?: ScrubSettings | undefined;
  readonly recount?: RecountSettings | undefined;
}

/** Has damage told as the alert that it is (D11), and damage and drift looked for while the node serves. */
export function watchStore(
  { id, scrub, recount }: WatchSettings,
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
