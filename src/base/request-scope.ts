// Carries the current request's id through everything that runs on its behalf.
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";

/** Longest request id that is accepted from a client. */
const REQUEST_ID_MAX_LENGTH = 64;

/**
 * Metadata with a request's id: from client to FileServer to MetaServer, and back in a refusal's trailers.
 */
export const REQUEST_ID_HEADER = "x-request-id";

const scope = new AsyncLocalStorage<string>();
/** An id that is made when it is first asked for. */
const NOT_MADE = "";
/** The request of the synchronous work that runs now. */
let runningId: string | undefined;
const FORM = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._:-]{7,${REQUEST_ID_MAX_LENGTH - 1}}$`);
/** Random once per process and followed by a count: ids serve to find log lines, and need not be secret. */
let prefix: string | undefined;
let made = 0;

/** Runs a function on behalf of a request; asynchronous work that it starts keeps the id. */
export function withRequestId<T>(id: string, run: () => T): T {
  if (runningId === undefined) return scope.run(id, run);
  return withRequestIdAtOnce(id, () => scope.run(id, run));
}

/**
 * Like withRequestId for synchronous work at a fraction of the cost; asynchronous work loses the id. Without
 * an id, one is made if the work asks for it.
 */
export function withRequestIdAtOnce<T>(id: string | undefined, run: () => T): T {
  const before = runningId;
  runningId = id ?? NOT_MADE;
  try {
    return run();
  } finally {
    runningId = before;
  }
}

/** The id of the current request; undefined for the process's own work. */
export function currentRequestId(): string | undefined {
  if (runningId === NOT_MADE) runningId = makeRequestId();
  return runningId ?? scope.getStore();
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
