// Maintenance in words: the nodes, end, reason, and whether new users stay away.
import type { LiveNode } from "./live-node.ts";
import { formatMoment } from "./time.ts";

/** The used fields of a node. */
export type MaintainedNode = Pick<LiveNode, "id" | "name" | "maintenance_until" | "maintenance">;

/** True for a node in an operator's maintenance, or under an action. */
export function isMaintained({ maintenance_until: until }: Pick<LiveNode, "maintenance_until">): boolean {
  return until !== undefined;
}

/**
 * "in maintenance until 23 Nov 2026, 18:00 (a new disk)", without a full stop; undefined without maintenance.
 */
export function maintenanceText(node: MaintainedNode): string | undefined {
  const { maintenance_until: until, maintenance } = node;
  if (until === undefined) return undefined;
  const why = maintenance === undefined || maintenance.comment === "" ? "" : ` (${maintenance.comment})`;
  return `in maintenance until ${formatMoment(until)}${why}`;
}

/** The effects of maintenance for operators, in sentences; empty under an action alone. */
export function maintenanceMeans({ maintenance }: Pick<LiveNode, "maintenance">): string {
  if (maintenance === undefined) return "";
  if (maintenance.placement_paused) return "Nobody is told of it, and no new user comes to it.";
  const problem = maintenance.placement_problem;
  const because = problem === undefined ? "the metadata store has not been told yet" : problem;
  return `Nobody is told of it. New users may still come to it, since ${because}; the console goes on trying.`;
}
