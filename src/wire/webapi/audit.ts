// Who did what: GET /api/audit and the state of the chains that the console gathers (decision D24).
import { z } from "zod";

/** Lines of one page of the console's list of acts. */
const AUDIT_LIST_MAX = 500;

/** One act. What a node says in it was checked for its place in the node's chain, not for its truth. */
export const auditEntry = z.object({
  /** Id of the node that wrote the line; "console" for the console's own. */
  node: z.string(),
  /** Unix seconds on the console's clock. */
  gathered_at: z.int(),
  /** Number of the line in its chain. */
  seq: z.int(),
  /** RFC 3339 in UTC, on the clock of who wrote it. */
  time: z.string(),
  /** Username, the session of an operator, or "node". */
  actor: z.string(),
  act: z.string(),
  subject: z.string(),
  request: z.string().optional(),
  detail: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  /** Set for the place where a node's chain broke: why. */
  broken: z.string().optional(),
});

/** One act. */
export type AuditEntry = z.infer<typeof auditEntry>;

const text = z.string().min(1).max(4_400);

/** The query of GET /api/audit. */
export const auditQuery = z.strictObject({
  /** One act, or several with commas between them; "quota.*" means all whose name begins so. */
  act: z.string().min(1).max(200).optional(),
  actor: text.optional(),
  /** Exactly this, or with "*" at the end all that begin so. */
  subject: text.optional(),
  node: z.string().min(1).max(128).optional(),
  /** Unix seconds, both included, by the time in the line. */
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
  /** 100 unless it says otherwise. */
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

/** A query as it was understood. */
export type AuditQuery = z.infer<typeof auditQuery>;

/** GET /api/audit: the newest first, by when they were gathered. */
export const auditList = z.object({
  entries: z.array(auditEntry),
  /** Null at the end. A page may have few entries, or none, and a next one: each looks through a bounded part of the log. */
  next_cursor: z.string().nullable(),
});

/** One chain that is gathered. */
export const auditChain = z.object({
  node: z.string(),
  /** Number of the last line that was gathered; 0 before the first. */
  last_seq: z.int(),
  /** Unix seconds of the last time that the node answered; 0 for never since the start of the console. */
  asked_at: z.int(),
  /** How often the chain broke. */
  breaks: z.int(),
  /** Why nothing is gathered at present. */
  problem: z.string().optional(),
});

/** GET /api/audit/chains. */
export const auditChains = z.object({ chains: z.array(auditChain) });
