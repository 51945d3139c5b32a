// /api/auth: sign in, sign out, who am I, a ticket for a WebSocket (spec 4.1, 5.8; decisions D3, D8, D17,
// T10).

import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { AuditAct } from "#base/audit-act.ts";
import { isGroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import { isLoopbackAddress } from "#base/network.ts";
import { VERSION } from "#base/version.ts";
import { factsOf, isForeign } from "#console/http/guard.ts";
import { type App, type OperatorSession, operatorOf, ProblemError, viewerOf } from "#console/http/route.ts";
import { COOKIE_NAME, clearSessionCookie, setSessionCookie } from "#console/http/session-cookie.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import {
  allLoggedOut,
  authStatus,
  loginReply,
  loginRequest,
  logoutReply,
  operatorSessions,
  ticketReply,
} from "#wire/webapi/auth.ts";
import type { LoginLimiter } from "./login-limiter.ts";
import type { OperatorPassword } from "./operator-password.ts";
import type { OperatorPerson } from "./operator-people.ts";
import type { OperatorSessions } from "./operator-sessions.ts";
import type { Tickets } from "./tickets.ts";

/** Delay of the answer to a wrong password (D17). */
const LOGIN_FAILURE_DELAY_MS = 1_000;

/** Dependencies of signing in. */
export interface SignInDeps {
  readonly sessions: OperatorSessions;
  readonly tickets: Tickets;
  readonly password: Pick<OperatorPassword, "isDefault" | "matches" | "nodeHash">;
  /** True where operators may sign in at an identity provider too. */
  readonly hasIdp?: boolean;
  readonly limiter: LoginLimiter;
  /** Lets operators sign in over plain HTTP from other machines. */
  readonly insecureHttp: boolean;
  /** Delay of the answer to a wrong password; shorter in tests. */
  readonly failureDelayMs?: number;
  readonly log: Logger;
  readonly audit: (act: AuditAct) => void;
  /** Called for each wrong password, and for each that the limit refused unchecked (W-03). */
  readonly onFailure: (address: string) => void;
}

/** Registers /api/auth/*. */
export function signInRoutes(app: App, deps: SignInDeps): void {
  const tags = ["auth"];
  app.post(
    "/api/auth/login",
    {
      config: { auth: "public" },
      schema: {
        operationId: "login",
        summary: "Sign in as an operator",
        description: `Sets the cookie ${COOKIE_NAME}; its value also counts as a bearer token.`,
        tags,
        body: loginRequest,
        response: { 200: loginReply },
      },
    },
    (request, reply) => login(deps, request, reply, request.body.password),
  );
  app.post(
    "/api/auth/logout",
    {
      config: { auth: "public" },
      schema: {
        operationId: "logout",
        summary: "Sign out; ends the session here too, and its WebSockets",
        tags,
        response: { 200: logoutReply },
      },
    },
    (request, reply) => logout(deps, request, reply),
  );
  app.get(
    "/api/auth/status",
    {
      config: { auth: "public" },
      schema: { operationId: "getAuthStatus", summary: "Who am I", tags, response: { 200: authStatus } },
    },
    (request) => {
      const viewer = viewerOf(request);
      const isOperator = viewer.kind === "operator";
      return {
        authenticated: isOperator,
        mode: isOperator ? ("operator" as const) : ("public" as const),
        expires_at: isOperator ? unixSeconds(viewer.session.expiresAtWallMs) : null,
        default_password: deps.password.isDefault,
        ...(deps.hasIdp === true ? { identity_provider: true as const } : {}),
        version: VERSION,
      };
    },
  );
  app.post(
    "/api/auth/ws-ticket",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "makeWsTicket",
        summary: "A ticket for one WebSocket, good once and for 30 seconds",
        tags,
        response: { 200: ticketReply },
      },
    },
    (request) => ({ ticket: deps.tickets.issue(operatorOf(request)), expires_in: 30 as const }),
  );
  sessionRoutes(app, deps);
}

/** Lists the sessions, and ends all of them for an operator who left one open on another machine. */
function sessionRoutes(app: App, deps: SignInDeps): void {
  const tags = ["auth"];
  app.get(
    "/api/auth/sessions",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "listOperatorSessions",
        summary: "Operators who are signed in, the newest first",
        tags,
        response: { 200: operatorSessions },
      },
    },
    (request) => {
      const own = operatorOf(request);
      return {
        sessions: deps.sessions.list().map(({ session, address, openedAtWallMs }) => ({
          id: session.id,
          address,
          opened_at: unixSeconds(openedAtWallMs),
          expires_at: unixSeconds(session.expiresAtWallMs),
          is_own: session === own,
        })),
      };
    },
  );
  app.post(
    "/api/auth/logout-all",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "logoutAll",
        summary: "Sign every operator out, whoever asks among them; ends their WebSockets too",
        tags,
        response: { 200: allLoggedOut },
      },
    },
    (request, reply) => {
      const { id } = operatorOf(request);
      const ended = deps.sessions.endAll("logout");
      deps.log.info("signed_out_all", { session: id, ended });
      deps.audit({
        act: "operator.close",
        actor: id,
        subject: "console",
        request: request.id,
        detail: { sessions: ended },
      });
      clearSessionCookie(reply, factsOf(request).isSecure);
      return { ended };
    },
  );
}

async function login(
  deps: SignInDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  password: string,
): Promise<{ authenticated: true; expires_at: number }> {
  requireAllowed(deps, request);
  const { address } = factsOf(request);
  const attempt = deps.limiter.begin(address);
  if (typeof attempt === "number") {
    deps.onFailure(address);
    throw new ProblemError("RATE_LIMITED", "too many wrong passwords; this one was not looked at", {
      retryAfterSeconds: attempt / 1_000,
    });
  }
  const passwordHash = adminPasswordHash(password);
  const isRight = await deps.password.matches(passwordHash).catch((error: unknown) => {
    attempt.takeBack();
    if (isGroveError(error, "RATE_LIMITED")) {
      throw new ProblemError(
        "RATE_LIMITED",
        "too many people sign in at once; this password was not looked at",
        {
          retryAfterSeconds: 1,
        },
      );
    }
    throw error;
  });
  if (!isRight) {
    deps.log.warn("sign_in_failed", { address });
    deps.onFailure(address);
    deps.audit({
      act: "operator.refused",
      actor: "unknown",
      subject: "console",
      request: request.id,
      detail: { address },
    });
    await sleep(deps.failureDelayMs ?? LOGIN_FAILURE_DELAY_MS);
    throw new ProblemError("BAD_PASSWORD", "that is not the operator's password");
  }
  attempt.succeeded();
  const { expiresAtWallMs } = openSession(deps, request, reply, { passwordHash });
  return { authenticated: true, expires_at: unixSeconds(expiresAtWallMs) };
}

/** Opens a session for a proven operator, with a name if known, and sets the browser's cookie. */
export function openSession(
  deps: SignInDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  operator: { readonly passwordHash: string; readonly person?: OperatorPerson | undefined },
): OperatorSession {
  const { address, isSecure } = factsOf(request);
  const { token, session } = deps.sessions.create(operator.passwordHash, address, operator.person);
  deps.log.info("signed_in", { address, session: session.id });
  deps.audit({
    act: "operator.open",
    actor: session.id,
    subject: "console",
    request: request.id,
    detail: { address },
  });
  setSessionCookie(reply, token, isSecure);
  return session;
}

/** Refuses requests before the password is checked. */
function requireAllowed(deps: SignInDeps, request: FastifyRequest): void {
  const { isLoopback: isLocal, isSecure } = factsOf(request);
  if (isForeign(request, false)) {
    throw new ProblemError("ORIGIN_REJECTED", "signing in must come from a page of this console");
  }
  if (!isSecure && !isLocal && !deps.insecureHttp) {
    throw new ProblemError(
      "LOGIN_NEEDS_TLS",
      "over plain HTTP everybody on the way could read the password: start the console with -tls_cert and -tls_key, put a proxy with " +
        "TLS before it (-trusted_proxy), sign in on the machine itself, or allow it with -insecure_http",
    );
  }
  // Guards against DNS rebinding: a page of another site is no process of this machine (T10).
  if (deps.password.isDefault && !(isLocal && isLocalHost(request.headers.host))) {
    throw new ProblemError(
      "DEFAULT_PASSWORD_REMOTE",
      "no password has been set, and the built-in one is good on the console's own machine only: run 'grove admin hash-password', " +
        "set ADMIN_PASSWORD_HASH for console and FileServers, and start them again",
    );
  }
}

function isLocalHost(host: string | undefined): boolean {
  const name = URL.parse(`http://${host ?? ""}/`)?.hostname.replace(/^\[|\]$/g, "") ?? "";
  return name === "localhost" || isLoopbackAddress(name);
}

function logout(deps: SignInDeps, request: FastifyRequest, reply: FastifyReply): { authenticated: false } {
  if (isForeign(request, false))
    throw new ProblemError("ORIGIN_REJECTED", "signing out must come from a page of this console");
  const viewer = viewerOf(request);
  if (viewer.kind === "operator") {
    deps.sessions.end(viewer.session);
    deps.log.info("signed_out", { address: viewer.address, session: viewer.session.id });
    deps.audit({ act: "operator.close", actor: viewer.session.id, subject: "console", request: request.id });
  }
  clearSessionCookie(reply, factsOf(request).isSecure);
  return { authenticated: false };
}

function unixSeconds(wallMs: number): number {
  return Math.floor(wallMs / 1_000);
}
