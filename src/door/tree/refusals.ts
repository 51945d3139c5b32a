// What a failure of the door's own calls is at /dav/; a FileServer's refusals stay what they are.
import { isClientError, UnknownOutcome } from "#client/terminal/client-error.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";

/** The refusal that stands for a failure; undefined for what needs none. */
export function davRefusalOf(error: unknown): DavRefusal | undefined {
  if (error instanceof UnknownOutcome)
    return new DavRefusal(
      503,
      "the server that holds these files went away and may have done this, or not; look before you try again",
    );
  if (isClientError(error, "NETWORK"))
    return new DavRefusal(503, "the server that holds these files does not answer; try again in a moment");
  if (isClientError(error, "SERVER_LIMIT", "CANCELLED"))
    return new DavRefusal(503, "the cluster is busy; try again in a moment");
  if (isClientError(error, "SIGN_IN_NEEDED", "SIGN_IN_FAILED"))
    return new DavRefusal(401, "your sign-in has ended; give name and password again");
  if (isClientError(error, "SERVER_DENIED")) return new DavRefusal(403, "the server does not allow that");
  if (isClientError(error, "SERVER_BROKEN", "SERVER_UNTRUSTED"))
    return new DavRefusal(502, "the server that holds these files failed; tell the cluster's administrator");
  return undefined;
}

/** Runs a call and throws its failure as what it is at /dav/. */
export async function refusing<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw davRefusalOf(error) ?? error;
  }
}

/** The same for a stream. */
export async function* refusingStream<T>(stream: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
  try {
    yield* stream;
  } catch (error) {
    throw davRefusalOf(error) ?? error;
  }
}
