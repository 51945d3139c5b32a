// The id of the request that is being worked on, known to everything that happens on its behalf without being handed along.
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";

/** Characters of a request's id; a longer one is not taken over. */
const REQUEST_ID_MAX_LENGTH = 64;

/** Metadata that carries a request's id from client to FileServer to MetaServer, and back in the trailers of a refusal. */
export const REQUEST_ID_HEADER = "x-request-id";

const scope = new AsyncLocalStorage<string>();
/** The request of what runs at this moment and ends before anything else does. */
let runningId: string | undefined;
const FORM = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._:-]{7,${REQUEST_ID_MAX_LENGTH - 1}}$`);
/** One draw for each process and a count behind it: ids are for finding, and need not be secret. */
let prefix: string | undefined;
let made = 0;

/** Runs something on behalf of a request; what it starts stays within, also after it has returned. */
export function withRequestId<T>(id: string, run: () => T): T {
  if (runningId === undefined) return scope.run(id, run);
  return withRequestIdAtOnce(id, () => scope.run(id, run));
}

/** The same for what has ended when it returns: a fraction of the work, and what it starts does not stay within. */
export function withRequestIdAtOnce<T>(id: string, run: () => T): T {
  const before = runningId;
  runningId = id;
  try {
    return run();
  } finally {
    runningId = before;
  }
}

/** The id of the request on whose behalf this runs; undefined for what the process does by itself. */
export function currentRequestId(): string | undefined {
  return runningId ?? scope.getStore();
}

/** A new id, unlike all others with near certainty: 13 random characters of this process, and a count. */
export function makeRequestId(): string {
  prefix ??= randomBytes(8).readBigUInt64BE().toString(36).padStart(13, "0");
  made++;
  return `${prefix}-${made.toString(36)}`;
}

/** The id that a client has sent, where it may stand in a log: 8 to 64 letters, digits and `.` `_` `:` `-`. Else a new one. */
export function requestIdFrom(sent: string | readonly string[] | undefined): string {
  return typeof sent === "string" && FORM.test(sent) ? sent : makeRequestId();
}
