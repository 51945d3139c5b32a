// Sign-in of operators: bodies and answers below /api/auth, and GET /api/version (decisions D3, D8, D18).
import { z } from "zod";

/** POST /api/auth/login. */
export const loginRequest = z.object({ password: z.string().min(1).max(1024) }).strict();

/** What a login answers, beside the cookie. */
export const loginReply = z.object({ authenticated: z.literal(true), expires_at: z.int() });

/** What a logout answers. */
export const logoutReply = z.object({ authenticated: z.literal(false) });

/** GET /api/auth/status. */
export const authStatus = z.object({
  authenticated: z.boolean(),
  mode: z.enum(["operator", "public"]),
  expires_at: z.int().nullable(),
  default_password: z.boolean(),
  /** There where operators may sign in at an identity provider, by GET /api/auth/idp in a browser. */
  identity_provider: z.literal(true).optional(),
  version: z.string(),
});

/** One operator who is signed in. Times are unix seconds. */
const operatorSession = z.object({
  /** What the audit log names: the first 8 characters of the token's hash, behind the address of whoever signed in by name. */
  id: z.string(),
  /** Where the password came from. */
  address: z.string(),
  opened_at: z.int(),
  expires_at: z.int(),
  /** True for the one that asks. */
  is_own: z.boolean(),
});

/** GET /api/auth/sessions: the newest first. */
export const operatorSessions = z.object({ sessions: z.array(operatorSession) });

/** One operator who is signed in, as it is sent. */
export type OperatorSessionRow = z.infer<typeof operatorSession>;

/** POST /api/auth/logout-all: how many sessions ended, that of whoever asks among them. */
export const allLoggedOut = z.object({ ended: z.int() });

/** POST /api/auth/ws-ticket: good for one upgrade. */
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
