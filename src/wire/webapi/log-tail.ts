// The last lines of a service's log on a node, and later ones (spec 4.1, decision D10).
import { z } from "zod";
import { LOG_LINES_MAX, LOG_LINES_MIN } from "#base/limits.ts";
import { SERVICES } from "./action-request.ts";

/** One line. In log files only lines of Grove's own services have time and priority. */
export const logLine = z.object({
  /** Unix seconds. */
  ts: z.number().nullable(),
  /** 0 (emergency) to 7 (debug), as in syslog. */
  priority: z.int().min(0).max(7).nullable(),
  message: z.string(),
});

/** One line, as sent. */
export type LogLine = z.infer<typeof logLine>;

/** The query of GET /api/logs/tail; lines beyond 10 to 1000 are clamped here (spec 4.1, 8). */
export const logTailQuery = z.strictObject({
  node: z.string().min(1).max(128),
  service: z.enum(SERVICES),
  lines: z
    .string()
    .regex(/^-?\d+$/, "a whole number")
    .transform((text) => Math.min(Math.max(Number(text), LOG_LINES_MIN), LOG_LINES_MAX))
    .optional(),
});

/** GET /api/logs/tail; as text/plain it is `text` alone. */
export const logTail = z.object({
  node_id: z.string(),
  service: z.enum(SERVICES),
  unit: z.string(),
  source: z.enum(["journal", "file"]),
  lines: z.array(logLine),
  text: z.string(),
  /** True when the lines exceeded 1 MiB and the oldest were left out. */
  truncated: z.boolean(),
});

/** The same as a value. */
export type LogTail = z.infer<typeof logTail>;
