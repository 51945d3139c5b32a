// The metadata of every call that the client makes: who calls, and the id by which servers' logs name the request.
import { currentRequestId, makeRequestId, REQUEST_ID_HEADER } from "#base/request-scope.ts";

/** Metadata with a bearer token; the id is that of the operation that runs, or a new one. */
export function callMetadata(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, [REQUEST_ID_HEADER]: currentRequestId() ?? makeRequestId() };
}
