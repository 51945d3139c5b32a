// People whose e-mail address has changed: the routes /api/new-addresses, for operators (D34).
import { z } from "zod";

/** An account that is known by one address and has come under another. */
export const newAddress = z.object({
  from: z.string(),
  to: z.string(),
  /** Of the identity provider, without `https://`. */
  issuer: z.string(),
  subject: z.string(),
  first_seen_at: z.int(),
  last_seen_at: z.int(),
});

/** An account that is known by one address and has come under another. */
export type NewAddress = z.infer<typeof newAddress>;

/** A confirmed change that some node has not carried out yet. */
export const changingAddress = z.object({ from: z.string(), to: z.string(), waits_for: z.array(z.string()) });

/** GET /api/new-addresses. */
export const newAddressList = z.object({
  /** The one who came last first; at most 1000. */
  waiting: z.array(newAddress),
  changing: z.array(changingAddress),
});

/** GET /api/new-addresses. */
export type NewAddressList = z.infer<typeof newAddressList>;

/** The body of a decision. */
export const addressDecision = z.object({ from: z.string(), to: z.string() }).strict();

/** The body of a decision. */
export type AddressDecision = z.infer<typeof addressDecision>;
