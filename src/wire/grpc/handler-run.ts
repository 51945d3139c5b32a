// Runs the interceptors and the handler of one call, and writes the messages of a reply stream.
import type { DescMessage } from "@bufbuild/protobuf";
import type { ServerLimits } from "#wire/framing/limits.ts";
import type { SlicedField } from "#wire/framing/sliced-field.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { CallContext, MaybePromise } from "./call-context.ts";
import type { ServerInterceptor } from "./handler.ts";
import { type AnyHandler, isStreaming, type ServedMethod } from "./served-method.ts";
import type { ServerReply } from "./server-reply.ts";
import { SlicedSendQueue, type SliceOutlet } from "./sliced.ts";

/** Shared by the handlers of a server. */
export interface HandlerRunDeps {
  readonly limits: ServerLimits;
  readonly interceptors: readonly ServerInterceptor[];
  /** Turns an error into a status, and reports unexpected ones. */
  readonly toStatus: (error: unknown, call: Pick<CallContext, "method" | "peer">) => StatusError;
}

/** The call on whose behalf a handler runs. */
export interface RunningCall extends CallContext {
  /** The reason of a cancellation from outside: the handler's own outcome then no longer counts. */
  readonly cancelled: StatusError | undefined;
}

/** The reply of a run. */
export interface RunReply extends Pick<ServerReply, "frame" | "hold" | "release" | "sendHeaders"> {
  readonly outlet: SliceOutlet;
}

/** One run. */
export class HandlerRun {
  readonly #deps: HandlerRunDeps;
  readonly #call: RunningCall;
  readonly #served: ServedMethod;
  readonly #reply: RunReply;
  /** The handler's result in a call with one reply. */
  result: unknown;

  constructor(deps: HandlerRunDeps, call: RunningCall, served: ServedMethod, reply: RunReply) {
    this.#deps = deps;
    this.#call = call;
    this.#served = served;
    this.#reply = reply;
  }

  /** Begins. Throws or rejects with the error of the interceptors or the handler. */
  start(input: unknown): MaybePromise<void> {
    return this.#deps.interceptors.length === 0 ? this.#invoke(input) : this.#intercept(0, input);
  }

  /** Runs the interceptors from `at` on, then the handler; errors arrive as the status of the call. */
  #intercept(at: number, input: unknown): MaybePromise<void> {
    const interceptor = this.#deps.interceptors[at];
    try {
      const outcome =
        interceptor === undefined
          ? this.#invokeLive(input)
          : interceptor(this.#call, () => this.#intercept(at + 1, input));
      return outcome instanceof Promise ? outcome.catch((error: unknown) => this.#translate(error)) : outcome;
    } catch (error) {
      return this.#translate(error);
    }
  }

  /** A handler may return normally although the call was ended meanwhile. */
  #invokeLive(input: unknown): MaybePromise<void> {
    const outcome = this.#invoke(input);
    if (outcome instanceof Promise) return outcome.then(() => this.#throwIfCancelled());
    return this.#throwIfCancelled();
  }

  #translate(error: unknown): never {
    throw this.#call.cancelled ?? this.#deps.toStatus(error, this.#call);
  }

  #invoke(input: unknown): MaybePromise<void> {
    const { handler, called, slicedResponses } = this.#served;
    if (handler === undefined) throw new StatusError(Code.UNIMPLEMENTED, `${called.path} is not implemented`);
    if (slicedResponses !== undefined) return this.#writeSliced(handler, input, slicedResponses);
    const result = handler(input, this.#call);
    if (isStreaming(called.kind, "replies")) return this.#writeAll(result as AsyncIterable<unknown>);
    if (result instanceof Promise) {
      return result.then((reply: unknown) => {
        this.result = reply;
      });
    }
    this.result = result;
    return undefined;
  }

  async #writeSliced(handler: AnyHandler, input: unknown, field: SlicedField<DescMessage>): Promise<void> {
    const reply = this.#reply;
    const { sendMessageBytes } = this.#deps.limits;
    const writer = new SlicedSendQueue(field, reply.outlet, sendMessageBytes, () => reply.sendHeaders());
    await handler(input, this.#call, writer);
    writer.finish();
  }

  async #writeAll(messages: AsyncIterable<unknown>): Promise<void> {
    const reply = this.#reply;
    for await (const message of messages) {
      this.#throwIfCancelled();
      const made = reply.frame(this.#served.output, message);
      const framed = made instanceof Promise ? await made : made;
      this.#throwIfCancelled();
      reply.sendHeaders();
      reply.hold(framed);
      const written = reply.outlet.write(framed);
      if (written !== true) await written;
      reply.release();
    }
  }

  #throwIfCancelled(): void {
    if (this.#call.cancelled !== undefined) throw this.#call.cancelled;
  }
}
