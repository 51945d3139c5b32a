// The interface between a call and its channel, and the interceptors around every call.
import type { DescMethod } from "@bufbuild/protobuf";
import type { Clock } from "#base/clock.ts";
import type { MessageBudget } from "#wire/framing/frames.ts";
import type { Decompressor } from "#wire/framing/gzip.ts";
import type { ChannelLimits } from "#wire/framing/limits.ts";
import type { Metadata } from "#wire/framing/metadata.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { Transport } from "./transport.ts";

/** A client interceptor's view of a call. */
export interface OutgoingCall {
  readonly method: DescMethod;
  /** Outgoing metadata; add to it before calling `next`. */
  readonly metadata: Metadata;
  readonly timeoutMs: number | undefined;
  /** The server that answered; undefined until connected. */
  readonly address: string | undefined;
}

/**
 * Code around every call, the first of the list outermost. `next` starts the rest and resolves when the call
 * has ended in OK, or rejects with its StatusError. An error thrown before `next` is the call's outcome;
 * later only that of a call with one reply.
 */
export type ClientInterceptor = (call: OutgoingCall, next: () => Promise<void>) => Promise<void>;

/** A call that waits for a connection. */
export interface CallWaiter {
  readonly waitForReady: boolean;
  ready(transport: Transport): void;
  failed(error: StatusError): void;
}

/** Dependencies of a call on its channel. */
export interface ChannelCore {
  readonly limits: ChannelLimits;
  readonly clock: Clock;
  readonly budget: MessageBudget;
  readonly unfolder: Decompressor;
  readonly interceptors: readonly ClientInterceptor[];
  current(): Transport | undefined;
  wait(waiter: CallWaiter): void;
  forget(waiter: CallWaiter): void;
}

/** Runs interceptors around a call; `start` settles when the call has ended. Rejects with StatusError. */
export const intercept = async (
  interceptors: readonly ClientInterceptor[],
  call: OutgoingCall,
  start: () => Promise<void>,
): Promise<void> => {
  let hasStarted = false;
  const run = (at: number): Promise<void> => {
    const interceptor = interceptors[at];
    if (interceptor !== undefined) return interceptor(call, () => run(at + 1));
    hasStarted = true;
    return start();
  };
  try {
    await run(0);
  } catch (error) {
    if (error instanceof StatusError) throw error;
    throw new StatusError(Code.UNKNOWN, "interceptor failed", { cause: error });
  }
  if (!hasStarted) throw new StatusError(Code.CANCELLED, "an interceptor did not start the call");
};
