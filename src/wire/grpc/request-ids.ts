// Puts every call of a server in the scope of its request's id, and hands that id on with the calls made on its behalf.
import {
  currentRequestId,
  REQUEST_ID_HEADER,
  requestIdFrom,
  withRequestId,
  withRequestIdAtOnce,
} from "#base/request-scope.ts";
import type { CallContext } from "./call-context.ts";
import type { ClientInterceptor } from "./channel-core.ts";
import type { ServerInterceptor } from "./handler.ts";

/**
 * Takes the id that the client sent, or makes one where it sent none that may stand in a log. What is logged, audited and called
 * during the call carries it, and so do the trailers of a call that fails. To be the outermost interceptor.
 */
export const requestIds: ServerInterceptor = (context, next) => {
  const id = requestIdFrom(context.metadata.get(REQUEST_ID_HEADER));
  const within = context.method.isInstant ? withRequestIdAtOnce : withRequestId;
  return within(id, () => {
    try {
      const outcome = next();
      return outcome instanceof Promise
        ? outcome.catch((error: unknown) => fail(context, id, error))
        : outcome;
    } catch (error) {
      return fail(context, id, error);
    }
  });
};

/** Hands the id of the request on whose behalf a call is made on to the next server. */
export const forwardRequestId: ClientInterceptor = (call, next) => {
  const id = currentRequestId();
  if (id !== undefined) call.metadata.set(REQUEST_ID_HEADER, id);
  return next();
};

function fail(context: CallContext, id: string, error: unknown): never {
  context.trailers.set(REQUEST_ID_HEADER, id);
  throw error;
}
