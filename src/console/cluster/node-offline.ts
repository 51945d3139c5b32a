// When a server that does not answer is offline (spec 3.2, decision T5): a node, and a MetaServer alike.
import { NODE_OFFLINE_AFTER_MS } from "#base/limits.ts";

/** True once nothing was heard for longer than NODE_OFFLINE_AFTER_MS; exactly then not yet. */
export function isOfflineAfter(silentMs: number): boolean {
  return silentMs > NODE_OFFLINE_AFTER_MS;
}
