// One line for each call that did not end well: a failure of this node for everybody who watches, a refusal for who looks closely.
import { isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { CallContext, ServerInterceptor } from "#grpc/handler.ts";
import { Code, codeName, StatusError } from "#grpc/status.ts";
import type { OperationMeter } from "./operation-meter.ts";
import { outcomeOf } from "./operation-outcome.ts";

/** Logs and counts; the token that came with a call, and what was read or written, reach no line. */
export function callLog(log: Logger, meter: Pick<OperationMeter, "callFailed">): ServerInterceptor {
  const failed = (context: CallContext, error: unknown): never => {
    meter.callFailed(error);
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    const fields = {
      method: context.method.name,
      address: context.peer.address,
      reason: isGroveError(cause)
        ? cause.code
        : codeName(error instanceof StatusError ? error.code : Code.UNKNOWN),
      error: errorText(cause),
    };
    if (outcomeOf(error) === "failed") log.warn("call_failed", fields);
    else log.debug("call_refused", fields);
    throw error;
  };
  return (context, next) => {
    try {
      const outcome = next();
      return outcome instanceof Promise ? outcome.catch((error: unknown) => failed(context, error)) : outcome;
    } catch (error) {
      return failed(context, error);
    }
  };
}
