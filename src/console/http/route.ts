// What the console's route modules share: application type, viewer, and the handlers' error (decision D2).
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest, RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { Problem, ProblemCode } from "#wire/webapi/problem.ts";

/** The application that routes are registered with; zod schemas give the types of bodies and queries. */
export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** The session of a signed-in operator (spec 2.4). */
export interface OperatorSession {
  /**
   * Id for logs and audit lines: the first 8 hex characters of the token's hash, after "alice@example.com/"
   * for operators who signed in by name.
   */
  readonly id: string;
  /** Wall time for display and for the cookie. */
  readonly expiresAtWallMs: number;
  /** The session's end; a wall clock that is set moves it for nobody. */
  readonly endsSteadyMs: number;
  /**
   * SHA-256 hex of the operator's password for SetQuota (T11): as typed, else as configured; empty when
   * unknown. Never logged, never sent to a browser.
   */
  readonly passwordHash: string;
}

/** The caller of a route, with the client's address. Visitors see redacted views only (spec 5.8.4). */
export type Viewer =
  | { readonly kind: "visitor"; readonly address: string }
  | { readonly kind: "operator"; readonly address: string; readonly session: OperatorSession };

/** Access to a route: "public" for visitors and operators, "operator" with a 401 for visitors. */
export type RouteAuth = "public" | "operator";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Required: the application does not start with a route that lacks it. */
    auth?: RouteAuth;
    /** Problem code for a body that does not match the schema; default REQUEST_INVALID. */
    invalidBody?: ProblemCode;
  }
  interface FastifyRequest {
    /** Set before any handler runs; read it through `viewerOf`. */
    viewer: Viewer | undefined;
  }
}

/** What a problem may carry beyond its code and detail (decision D2). */
export interface ProblemExtra extends Partial<Pick<Problem, "errors" | "locked" | "grpc_code" | "reason">> {
  /** Sent as Retry-After. */
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/** An error that becomes a problem document with the code's status. The detail never holds a secret. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly code: ProblemCode;
  readonly extra: ProblemExtra;

  constructor(code: ProblemCode, detail: string, extra: ProblemExtra = {}) {
    super(detail, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.code = code;
    this.extra = extra;
  }
}

/** The caller of the request. */
export function viewerOf(request: FastifyRequest): Viewer {
  if (request.viewer === undefined) throw new TypeError("nobody has looked yet who asks");
  return request.viewer;
}

/** The operator's session. Throws AUTH_REQUIRED for a visitor. */
export function operatorOf(request: FastifyRequest): OperatorSession {
  const viewer = viewerOf(request);
  if (viewer.kind === "operator") return viewer.session;
  throw new ProblemError("AUTH_REQUIRED", "sign in as an operator first: POST /api/auth/login");
}

/** Media type of every JSON response that is no problem. */
export const JSON_TYPE = "application/json; charset=utf-8";

/** The part of a reply that `sendJson` needs, for any route's schema. */
interface AnyReply {
  type(contentType: string): unknown;
  send(body: never): unknown;
}

/** Replies 200 with serialised JSON; the handler then returns nothing. */
export function sendJson(reply: AnyReply, body: Buffer): void {
  reply.type(JSON_TYPE);
  reply.send(body as never);
}
