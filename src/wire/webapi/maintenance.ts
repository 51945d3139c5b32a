// Maintenance that an operator has put a node into: the routes /api/maintenance and /api/nodes/:id/maintenance (decision D11).
import { z } from "zod";
import { endAsked } from "./notification.ts";

/** PUT /api/nodes/:id/maintenance. It begins at once; of a node that is in maintenance already it changes end and comment. */
export const maintenanceRequest = z
  .object({ ...endAsked, comment: z.string().max(1024).default("") })
  .strict();

/** What an operator asks for. */
export type MaintenanceRequest = z.infer<typeof maintenanceRequest>;

/** A maintenance as it is kept. */
export const keptMaintenance = z.object({
  node_id: z.string(),
  starts_at: z.int(),
  ends_at: z.int(),
  created_by: z.string(),
  comment: z.string(),
});

/** A maintenance as it is kept. */
export type KeptMaintenance = z.infer<typeof keptMaintenance>;

/** A maintenance as it is sent. */
export const nodeMaintenance = keptMaintenance.extend({
  /** True when the metadata store knows that new users' roots are not to come to this node. */
  placement_paused: z.boolean(),
  /** Why it does not know; it is told again every few seconds. */
  placement_problem: z.string().optional(),
});

/** A maintenance as it is sent. */
export type NodeMaintenance = z.infer<typeof nodeMaintenance>;

/** GET /api/maintenance: the nodes that are in maintenance now, by id. */
export const maintenanceList = z.object({ maintenance: z.array(nodeMaintenance) });
