// One notification before it takes a receiver's form: open alerts, news and ends (decision D11).
import { z } from "zod";
import { ALERT_TYPES } from "#wire/webapi/alert.ts";

/**
 * Why an alert is in a message: "raised", "worse", "flapping" and "over" are news; "repeat" is sent again,
 * "standing" is context for others of its group.
 */
const REASONS = ["raised", "worse", "flapping", "over", "repeat", "standing"] as const;

/** The subject of an alert, in a message and in a file. */
export const subjectShape = {
  nodeId: z.string().optional(),
  nodeName: z.string().optional(),
  username: z.string().optional(),
  value: z.number().optional(),
  threshold: z.number().optional(),
  detail: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
};

/** One alert in a message. Times are wall milliseconds. */
const notificationAlert = z.object({
  key: z.string(),
  type: z.enum(ALERT_TYPES),
  status: z.enum(["firing", "resolved"]),
  reason: z.enum(REASONS),
  severity: z.enum(["warning", "critical"]),
  /** The worst level sent since it was raised: receivers of critical alerts also get their end. */
  worst: z.enum(["warning", "critical"]),
  ...subjectShape,
  startsAtMs: z.number(),
  endsAtMs: z.number().optional(),
});

/** One alert in a message. */
export type NotificationAlert = z.infer<typeof notificationAlert>;

/** One message. */
export const notificationShape = z.object({
  /** The labels that all its alerts share and that no other group has. */
  group: z.record(z.string(), z.string()),
  /** Whether an alert of the group is still open. */
  status: z.enum(["firing", "resolved"]),
  alerts: z.array(notificationAlert),
  /** Open alerts of the group that are not listed. */
  truncated: z.int(),
});

/** One message. */
export type Notice = z.infer<typeof notificationShape>;
