// Carries the current request's id through everything that runs on its behalf.
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import type { CallWaits } from "./wait-times.ts";

/** Longest request id that is accepted from a client. */
const REQUEST_ID_MAX_LENGTH = 64;

/**
 * Metadata with a request's id: from client to FileServer to MetaServer, and back in a refusal's trailers.
 */
export const REQUEST_ID_HEADER = "x-request-id";

/** One request in progress. */
export class RequestScope {
  #id: string | undefined;
  /** What it has waited for, while that is recorded. */
  waits: CallWaits | undefined;

  constructor(id: string | undefined) {
    this.#id = id;
  }

  /** Its id, made when it is first asked for: most requests leave no line in a log. */
  get id(): string {
    this.#id ??= makeRequestId();
    return this.#id;
  }
}

const scopes = new AsyncLocalStorage<RequestScope>();
/** The request of the synchronous work that runs now. */
let running: RequestScope | undefined;
const FORM = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._:-]{7,${REQUEST_ID_MAX_LENGTH - 1}}$`);
/** Random once per process and followed by a count: ids serve to find log lines, and need not be secret. */
let prefix: string | undefined;
let made = 0;

/**
 * Runs a function on behalf of a request; asynchronous work that it starts stays within. Without an id, one
 * is made if the work asks for it.
 */
export function withRequestId<T>(id: string | undefined, run: () => T): T {
  const scope = new RequestScope(id);
  return running === undefined ? scopes.run(scope, run) : within(scope, () => scopes.run(scope, run));
}

/** Like withRequestId for synchronous work at a fraction of the cost; asynchronous work loses the request. */
export function withRequestIdAtOnce<T>(id: string | undefined, run: () => T): T {
  return within(new RequestScope(id), run);
}

/** Runs a function as the process's own work, also where a request has called for it. */
export function withoutRequest<T>(run: () => T): T {
  return within(undefined, () => scopes.exit(run));
}

function within<T>(scope: RequestScope | undefined, run: () => T): T {
  const before = running;
  running = scope;
  try {
    return run();
  } finally {
    running = before;
  }
}

/** The current request; undefined for the process's own work. */
export function currentScope(): RequestScope | undefined {
  return running ?? scopes.getStore();
}

/** The id of the current request; undefined for the process's own work. */
export function currentRequestId(): string | undefined {
  return currentScope()?.id;
}

/** A new id, unique with near certainty: 13 random characters of this process, and a count. */
export function makeRequestId(): string {
  prefix ??= randomBytes(8).readBigUInt64BE().toString(36).padStart(13, "0");
  made++;
  return `${prefix}-${made.toString(36)}`;
}

/** A client's id when it is safe to log: 8 to 64 letters, digits and `.` `_` `:` `-`. */
export function safeRequestId(sent: string | readonly string[] | undefined): string | undefined {
  return typeof sent === "string" && FORM.test(sent) ? sent : undefined;
}

/** A client's id when it is safe to log, else a new one. */
export function requestIdFrom(sent: string | readonly string[] | undefined): string {
  return safeRequestId(sent) ?? makeRequestId();
}
