// What every route module of the console uses: the kind of application, who asks, and the one error that handlers throw (decision D2).
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest, RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { Problem, ProblemCode } from "#wire/webapi/problem.ts";

/** The application that route modules register their routes with; schemas of zod give the types of bodies and queries. */
export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** An operator who is signed in (spec 2.4). */
export interface OperatorSession {
  /** What may be logged, and what audit lines name: the first 8 hex characters of the token's hash, behind "alice@example.com/" for whoever signed in by name. */
  readonly id: string;
  /** Wall time for people and for the cookie; the session itself ends by the steady clock. */
  readonly expiresAtWallMs: number;
  /** SHA-256 hex of the operator's password for SetQuota (T11): what was typed, else what is configured; empty where that is not known. Never logged, never sent to a browser. */
  readonly passwordHash: string;
}

/** Who asks. Visitors see redacted views only (spec 5.8.4). The address is the one of the client, not of a trusted proxy. */
export type Viewer =
  | { readonly kind: "visitor"; readonly address: string }
  | { readonly kind: "operator"; readonly address: string; readonly session: OperatorSession };

/** Who may call a route: everybody (then `viewerOf` says who it is), or operators alone (401 for others before anything else happens). */
export type RouteAuth = "public" | "operator";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Required: an application with a route that does not say it does not start. */
    auth?: RouteAuth;
    /** Code of the problem when the body is not what the schema says; default REQUEST_INVALID. */
    invalidBody?: ProblemCode;
  }
  interface FastifyRequest {
    /** Set before any handler runs; read it through `viewerOf`. */
    viewer: Viewer | undefined;
  }
}

/** What a problem may carry beyond its code and its sentence (decision D2). */
export interface ProblemExtra extends Partial<Pick<Problem, "errors" | "locked" | "grpc_code" | "reason">> {
  /** Sent as Retry-After. */
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/** Thrown anywhere in a handler, it becomes the answer: a problem document with the code's status. The detail never holds a secret. */
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

/** Who asks. */
export function viewerOf(request: FastifyRequest): Viewer {
  if (request.viewer === undefined) throw new TypeError("nobody has looked yet who asks");
  return request.viewer;
}

/** The operator's session. Throws AUTH_REQUIRED when a visitor asks. */
export function operatorOf(request: FastifyRequest): OperatorSession {
  const viewer = viewerOf(request);
  if (viewer.kind === "operator") return viewer.session;
  throw new ProblemError("AUTH_REQUIRED", "sign in as an operator first: POST /api/auth/login");
}

/** Media type of every answer that is JSON and no problem. */
export const JSON_TYPE = "application/json; charset=utf-8";

/** As much of a reply as `sendJson` needs, whatever the schema of its route. */
interface AnyReply {
  type(contentType: string): unknown;
  send(body: never): unknown;
}

/** Answers 200 with JSON that is serialised already; the handler returns nothing then. */
export function sendJson(reply: AnyReply, body: Buffer): void {
  reply.type(JSON_TYPE);
  reply.send(body as never);
}
