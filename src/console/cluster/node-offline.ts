// Decides when a silent node or MetaServer is offline (spec 3.2, decision T5).
import { NODE_OFFLINE_AFTER_MS } from "#base/limits.ts";

/** True after more than NODE_OFFLINE_AFTER_MS of silence; false at exactly that. */
export function isOfflineAfter(silentMs: number): boolean {
  return silentMs > NODE_OFFLINE_AFTER_MS;
}
