// The cookie of an operator's session: its name, its attributes, its life (spec 2.4).
import type { FastifyReply } from "fastify";
import { ADMIN_SESSION_LIFETIME_MS } from "#base/limits.ts";

/** Name of the cookie (spec 2.4). */
export const COOKIE_NAME = "svc_admin_token";

const ATTRIBUTES = { httpOnly: true, path: "/", sameSite: "lax" } as const;

/** Gives the browser a session's token for the life of a session, Secure where its connection is (spec 2.4). */
export function setSessionCookie(reply: FastifyReply, token: string, isSecure: boolean): void {
  reply.setCookie(COOKIE_NAME, token, {
    ...ATTRIBUTES,
    secure: isSecure,
    maxAge: ADMIN_SESSION_LIFETIME_MS / 1_000,
  });
}

/** Takes the cookie away from the browser. */
export function clearSessionCookie(reply: FastifyReply, isSecure: boolean): void {
  reply.clearCookie(COOKIE_NAME, { ...ATTRIBUTES, secure: isSecure });
}
