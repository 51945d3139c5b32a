// Turns errors into problem documents: complete for our own codes, one general sentence for all others (D2).
import { STATUS_CODES } from "node:http";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import { isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { VERSION } from "#base/version.ts";
import type { Problem, ProblemCode } from "#wire/webapi/problem.ts";
import { PROBLEM_OF_REFUSAL, PROBLEMS } from "./problem-table.ts";
import { ProblemError } from "./route.ts";

/** Invalid fields of a request that its problem document lists. */
const PROBLEM_FIELDS_MAX = 20;

/** Media type of every error response (RFC 9457). */
export const PROBLEM_TYPE = "application/problem+json; charset=utf-8";

/** WWW-Authenticate of every 401 (decision D2). */
const CHALLENGE = 'Bearer realm="svc-admin"';

/** The problem document for the request with this id. */
export function problemDocument(error: ProblemError, requestId: string): Problem {
  const { status, title } = PROBLEMS[error.code];
  const { errors, locked, grpc_code, reason } = error.extra;
  return {
    type: `urn:svc:problem:${error.code.toLowerCase().replaceAll("_", "-")}`,
    title,
    status,
    detail: error.message,
    instance: `urn:svc:request:${requestId}`,
    code: error.code,
    ...(errors === undefined ? {} : { errors }),
    ...(locked === undefined ? {} : { locked }),
    ...(grpc_code === undefined ? {} : { grpc_code }),
    ...(reason === undefined ? {} : { reason }),
  };
}

/** Replies with an error's problem document; internal errors are logged and not shown. */
export function replyProblem(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: Logger,
): FastifyReply {
  const problem = asProblem(error, request);
  const { status } = PROBLEMS[problem.code];
  if (status === 500) {
    const stack = error instanceof Error ? (error.stack ?? "") : "";
    log.error("request_failed", { route: routeOf(request), error: errorText(error), stack });
  }
  if (status === 401) reply.header("www-authenticate", CHALLENGE);
  if (problem.extra.retryAfterSeconds !== undefined) {
    reply.header("retry-after", String(Math.max(1, Math.ceil(problem.extra.retryAfterSeconds))));
  }
  return reply
    .code(status)
    .header("cache-control", "no-store")
    .type(PROBLEM_TYPE)
    .serializer(JSON.stringify)
    .send(problemDocument(problem, request.id));
}

/** Method and pattern of the route, for logs: the path itself may contain a name or a token. */
export function routeOf(request: FastifyRequest): string {
  return `${request.method} ${request.routeOptions.url ?? "?"}`;
}

/** A whole response for a connection whose request is no valid HTTP. */
export function rawProblem(
  code: ProblemCode,
  detail: string,
  requestId: string,
  headers: Readonly<Record<string, string>> = {},
): string {
  const body = JSON.stringify(problemDocument(new ProblemError(code, detail), requestId));
  const { status } = PROBLEMS[code];
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    `X-Request-Id: ${requestId}`,
    `X-Svc-Version: ${VERSION}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "Connection: close",
    "",
    body,
  ].join("\r\n");
}

function asProblem(error: unknown, request: FastifyRequest): ProblemError {
  if (error instanceof ProblemError) return error;
  if (isGroveError(error)) return new ProblemError(PROBLEM_OF_REFUSAL[error.code], error.message);
  if (hasZodFastifySchemaValidationErrors(error)) return invalidRequest(error, request);
  const { code, statusCode } = (error ?? {}) as Partial<FastifyError>;
  switch (code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new ProblemError("BODY_TOO_LARGE", "a body may have at most 65,536 bytes");
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new ProblemError("UNSUPPORTED_MEDIA_TYPE", "send the body as Content-Type: application/json");
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return new ProblemError("BAD_REQUEST", "the body is not as long as Content-Length says");
    case "FST_ERR_BAD_URL":
      return new ProblemError("BAD_REQUEST", "the path is not valid percent-encoding");
    default:
  }
  // Other errors of the framework with a status below 500 are the caller's; all else is internal.
  const isCallers = typeof code === "string" && code.startsWith("FST_") && (statusCode ?? 500) < 500;
  return isCallers
    ? new ProblemError("BAD_REQUEST", "the request cannot be understood")
    : new ProblemError(
        "INTERNAL",
        "an error of the console; its log tells more under the id of this request",
        {
          cause: error,
        },
      );
}

type ValidationError = Omit<FastifyError, "validation"> & {
  readonly validation: readonly {
    readonly instancePath: string;
    readonly keyword: string;
    readonly message?: string;
  }[];
};

function invalidRequest(error: ValidationError, request: FastifyRequest): ProblemError {
  const place = error.validationContext ?? "body";
  const errors = error.validation.slice(0, PROBLEM_FIELDS_MAX).map(({ instancePath, keyword, message }) => ({
    pointer: `${place === "body" ? "" : place === "querystring" ? "/query" : "/path"}${instancePath === "/" ? "" : instancePath}`,
    code: keyword,
    detail: message ?? "invalid",
  }));
  const code =
    place === "body"
      ? (request.routeOptions.config.invalidBody ?? "REQUEST_INVALID")
      : place === "querystring"
        ? "QUERY_INVALID"
        : "REQUEST_INVALID";
  const first = errors[0];
  return new ProblemError(
    code,
    first === undefined ? "invalid" : `${first.pointer === "" ? "the body" : first.pointer}: ${first.detail}`,
    { errors },
  );
}
