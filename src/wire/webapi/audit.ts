// GET /api/audit and the state of the audit chains that the console gathers (decision D24).
import { z } from "zod";

/** Lines of one page of the console's list of acts. */
const AUDIT_LIST_MAX = 500;

/** One act. The console verifies a node's entry in its chain, but not its content. */
export const auditEntry = z.object({
  /** Id of the node that wrote the line; "console" for the console's own. */
  node: z.string(),
  /** Unix seconds on the console's clock. */
  gathered_at: z.int(),
  /** Number of the line in its chain. */
  seq: z.int(),
  /** RFC 3339 in UTC, on the writer's clock. */
  time: z.string(),
  /** Username, the session of an operator, or "node". */
  actor: z.string(),
  act: z.string(),
  subject: z.string(),
  request: z.string().optional(),
  detail: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  /** Set where a node's chain broke: the reason. */
  broken: z.string().optional(),
});

/** One act. */
export type AuditEntry = z.infer<typeof auditEntry>;

const text = z.string().min(1).max(4_400);

/** The query of GET /api/audit. */
export const auditQuery = z.strictObject({
  /** One act, or several separated by commas; "quota.*" means all with that prefix. */
  act: z.string().min(1).max(200).optional(),
  actor: text.optional(),
  /** An exact subject, or a prefix followed by "*". */
  subject: text.optional(),
  node: z.string().min(1).max(128).optional(),
  /** Unix seconds, both inclusive, by the line's own time. */
  from: z
    .string()
    .regex(/^\d{1,11}$/, "unix seconds")
    .transform(Number)
    .optional(),
  to: z
    .string()
    .regex(/^\d{1,11}$/, "unix seconds")
    .transform(Number)
    .optional(),
  /** Default 100. */
  limit: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, `a whole number from 1 to ${AUDIT_LIST_MAX}`)
    .transform(Number)
    .pipe(z.int().max(AUDIT_LIST_MAX))
    .optional(),
  cursor: z
    .string()
    .regex(/^\d{1,15}\.\d{1,15}$/, "next_cursor of an answer before")
    .optional(),
});

/** A query as parsed. */
export type AuditQuery = z.infer<typeof auditQuery>;

/** GET /api/audit: newest first, by the time of gathering. */
export const auditList = z.object({
  entries: z.array(auditEntry),
  /** Null at the end. A page before the end may be empty, since each searches a bounded part of the log. */
  next_cursor: z.string().nullable(),
});

/** One gathered chain. */
export const auditChain = z.object({
  node: z.string(),
  /** Number of the last gathered line; 0 before the first. */
  last_seq: z.int(),
  /** Unix seconds of the node's last answer; 0 for none since the console's start. */
  asked_at: z.int(),
  /** Number of breaks in the chain. */
  breaks: z.int(),
  /** Why gathering has stopped. */
  problem: z.string().optional(),
});

/** GET /api/audit/chains. */
export const auditChains = z.object({ chains: z.array(auditChain) });
