// The metadata of every call of the client: the bearer token, and the request id that servers log.
import { currentRequestId, makeRequestId, REQUEST_ID_HEADER } from "#base/request-scope.ts";

/** Metadata with a bearer token and the id of the current operation, or a new id. */
export function callMetadata(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}`, ...requestMetadata() };
}

/** Metadata with that id alone. */
export function requestMetadata(): Record<string, string> {
  return { [REQUEST_ID_HEADER]: currentRequestId() ?? makeRequestId() };
}
