// Parts of sentences that several alerts share: spans, moments, reasons; each reads well without its fact.
import { NODE_OFFLINE_AFTER_MS } from "#base/limits.ts";

/** The time without an answer after which a server is offline (spec 3.2). */
export const OFFLINE_AFTER: string = span(NODE_OFFLINE_AFTER_MS / 1_000);

/** A fact of an alert. */
export type Part = string | number | undefined;

/** A span in words: "45 s", "12 min", "3.5 h", "4 days". */
export function span(secondsAway: number): string {
  if (secondsAway < 60) return `${Math.round(secondsAway)} s`;
  if (secondsAway < 3600) return `${Math.round(secondsAway / 60)} min`;
  return secondsAway < 172_800
    ? `${Math.round(secondsAway / 360) / 10} h`
    : `${Math.round(secondsAway / 86_400)} days`;
}

/** The last answer in words, from unix seconds; 0 for none. */
export function lastAnswer(lastSeen: Part): string {
  if (typeof lastSeen !== "number" || lastSeen === 0) return "it never has since the console started";
  return `its last answer came at ${new Date(lastSeen * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** ": the reason"; empty without one. */
export function because(reason: Part): string {
  return reason === undefined ? "" : `: ${reason}`;
}
