// Sign-in of operators: requests and replies below /api/auth, and GET /api/version (decisions D3, D8, D18).
import { z } from "zod";

/** POST /api/auth/login. */
export const loginRequest = z.object({ password: z.string().min(1).max(1024) }).strict();

/** The reply of a login, besides the cookie. */
export const loginReply = z.object({ authenticated: z.literal(true), expires_at: z.int() });

/** The reply of a logout. */
export const logoutReply = z.object({ authenticated: z.literal(false) });

/** GET /api/auth/status. */
export const authStatus = z.object({
  authenticated: z.boolean(),
  mode: z.enum(["operator", "public"]),
  expires_at: z.int().nullable(),
  default_password: z.boolean(),
  /** Present where operators may sign in at an identity provider, by GET /api/auth/idp in a browser. */
  identity_provider: z.literal(true).optional(),
  version: z.string(),
});

/** A signed-in operator. Times are unix seconds. */
const operatorSession = z.object({
  /**
   * The name in the audit log: 8 characters of the token's hash, after the operator's address for named
   * sign-ins.
   */
  id: z.string(),
  /** Address of the client at sign-in. */
  address: z.string(),
  opened_at: z.int(),
  expires_at: z.int(),
  /** True for the caller's own session. */
  is_own: z.boolean(),
});

/** GET /api/auth/sessions: newest first. */
export const operatorSessions = z.object({ sessions: z.array(operatorSession) });

/** A signed-in operator, as sent. */
export type OperatorSessionRow = z.infer<typeof operatorSession>;

/** POST /api/auth/logout-all: the number of ended sessions, the caller's included. */
export const allLoggedOut = z.object({ ended: z.int() });

/** POST /api/auth/ws-ticket: valid for one upgrade. */
export const ticketReply = z.object({
  ticket: z.string().regex(/^[0-9a-f]{64}$/),
  expires_in: z.literal(30),
});

/** GET /api/version. */
export const versionReply = z.object({
  version: z.string(),
  git_commit: z.string().nullable(),
  api: z.literal("1"),
  min_client: z.string(),
});
