// Maintenance of nodes: the routes /api/maintenance and /api/nodes/:id/maintenance (decision D11).
import { z } from "zod";
import { endAsked } from "./notification.ts";

/**
 * PUT /api/nodes/:id/maintenance. It begins at once; for a node in maintenance it changes end and comment.
 */
export const maintenanceRequest = z
  .object({ ...endAsked, comment: z.string().max(1024).default("") })
  .strict();

/** An operator's request for maintenance. */
export type MaintenanceRequest = z.infer<typeof maintenanceRequest>;

/** A maintenance as stored. */
export const storedMaintenance = z.object({
  node_id: z.string(),
  starts_at: z.int(),
  ends_at: z.int(),
  created_by: z.string(),
  comment: z.string(),
});

/** A maintenance as stored. */
export type StoredMaintenance = z.infer<typeof storedMaintenance>;

/** A maintenance as sent. */
export const nodeMaintenance = storedMaintenance.extend({
  /** True when the metadata store places no new users' roots on this node. */
  placement_paused: z.boolean(),
  /** Why the store does not know yet; the console retries every few seconds. */
  placement_problem: z.string().optional(),
});

/** A maintenance as sent. */
export type NodeMaintenance = z.infer<typeof nodeMaintenance>;

/** GET /api/maintenance: nodes in maintenance, by id. */
export const maintenanceList = z.object({ maintenance: z.array(nodeMaintenance) });
