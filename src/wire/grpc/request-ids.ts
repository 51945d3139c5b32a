// Runs every call of a server in the scope of its request id, and forwards the id with outgoing calls.
import {
  currentRequestId,
  REQUEST_ID_HEADER,
  safeRequestId,
  withRequestId,
  withRequestIdAtOnce,
} from "#base/request-scope.ts";
import type { CallContext } from "./call-context.ts";
import type { ClientInterceptor } from "./channel-core.ts";
import type { ServerInterceptor } from "./handler.ts";

/**
 * Takes the client's id, or makes one where it is missing or unsafe in a log. Log lines, audit acts and calls
 * during the call carry it, and so do the trailers of a failed call. Install it as the outermost interceptor.
 */
export const requestIds: ServerInterceptor = (context, next) => {
  const within = context.method.isInstant ? withRequestIdAtOnce : withRequestId;
  return within(safeRequestId(context.metadata.get(REQUEST_ID_HEADER)), () => {
    try {
      const outcome = next();
      return outcome instanceof Promise ? outcome.catch((error: unknown) => fail(context, error)) : outcome;
    } catch (error) {
      return fail(context, error);
    }
  });
};

/** Forwards the current request's id to the next server. */
export const forwardRequestId: ClientInterceptor = (call, next) => {
  const id = currentRequestId();
  if (id !== undefined) call.metadata.set(REQUEST_ID_HEADER, id);
  return next();
};

function fail(context: CallContext, error: unknown): never {
  const id = currentRequestId();
  if (id !== undefined) context.trailers.set(REQUEST_ID_HEADER, id);
  throw error;
}
