// Maintenance in words: which nodes are in it, until when and why, and whether new users stay away from them.
import type { LiveNode } from "./live-node.ts";
import { formatMoment } from "./time.ts";

/** What is looked at. */
export type MaintainedNode = Pick<LiveNode, "id" | "name" | "maintenance_until" | "maintenance">;

/** True for a node that an operator has put into maintenance, or in which an action is at work. */
export function isMaintained({ maintenance_until: until }: Pick<LiveNode, "maintenance_until">): boolean {
  return until !== undefined;
}

/** "in maintenance until 23 Nov 2026, 18:00 (a new disk)", without a stop; undefined for a node that is in none. */
export function maintenanceText(node: MaintainedNode): string | undefined {
  const { maintenance_until: until, maintenance } = node;
  if (until === undefined) return undefined;
  const why = maintenance === undefined || maintenance.comment === "" ? "" : ` (${maintenance.comment})`;
  return `in maintenance until ${formatMoment(until)}${why}`;
}

/** What that means, as operators are told: sentences. Empty where an action alone is at work. */
export function maintenanceMeans({ maintenance }: Pick<LiveNode, "maintenance">): string {
  if (maintenance === undefined) return "";
  if (maintenance.placement_paused) return "Nobody is told of it, and no new user comes to it.";
  const problem = maintenance.placement_problem;
  const because = problem === undefined ? "the metadata store has not been told yet" : problem;
  return `Nobody is told of it. New users may still come to it, since ${because}; the console goes on trying.`;
}
