// A method as the server keeps it: name, types and handler.
import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { BULKY_CALL_COST, type ReceiveLimits } from "#wire/framing/limits.ts";
import { SlicedField } from "#wire/framing/sliced-field.ts";
import type { CallContext, CalledMethod } from "./call-context.ts";

/** A handler of any kind, with its types erased. */
export type AnyHandler = (input: unknown, context: CallContext, writer?: unknown) => unknown;

/** A handler in the sliced form, with its types erased. */
export interface AnySlicedHandler {
  readonly sliced: "requests" | "responses";
  readonly fieldPath: string;
  readonly handler: AnyHandler;
}

/** A synchronous handler, with its types erased. */
export interface AnyInstantHandler {
  readonly instant: AnyHandler;
}

/** A handler of large replies, with its types erased. */
export interface AnyBulkyHandler {
  readonly bulky: AnyHandler;
}

/** A method that the server answers. */
export interface ServedMethod {
  readonly called: CalledMethod;
  readonly input: DescMessage;
  readonly output: DescMessage;
  /** Undefined when the service does not implement it. */
  readonly handler: AnyHandler | undefined;
  /** True where its calls take turns. */
  readonly isBulky: boolean;
  /** Cost of beginning a call, in calls with a small answer. */
  readonly cost: number;
  /** Limits of each of its request messages. */
  readonly limits: ReceiveLimits;
  readonly slicedRequests: SlicedField<DescMessage> | undefined;
  readonly slicedResponses: SlicedField<DescMessage> | undefined;
}

/** Whether one side of a method is a stream of messages. */
export const isStreaming = (kind: CalledMethod["kind"], direction: "requests" | "replies"): boolean =>
  kind === "bidi_streaming" || kind === (direction === "requests" ? "client_streaming" : "server_streaming");

/** Combines a method and its handler. Throws TypeError when a sliced handler names no bytes field. */
export const serve = (
  method: DescMethod,
  handler: AnyHandler | AnyInstantHandler | AnyBulkyHandler | AnySlicedHandler | undefined,
  service: string,
  { limits, cost }: { readonly limits: ReceiveLimits; readonly cost?: number | undefined },
): ServedMethod => {
  const sliced = typeof handler === "object" && "sliced" in handler ? handler : undefined;
  const instant = typeof handler === "object" && "instant" in handler ? handler.instant : undefined;
  const bulky = typeof handler === "object" && "bulky" in handler ? handler.bulky : undefined;
  return {
    called: {
      service,
      name: method.name,
      path: `/${service}/${method.name}`,
      kind: method.methodKind,
      isInstant: instant !== undefined,
    },
    input: method.input,
    output: method.output,
    handler: typeof handler === "function" ? handler : (sliced?.handler ?? instant ?? bulky),
    isBulky: bulky !== undefined,
    cost: cost ?? (bulky === undefined && sliced === undefined ? 1 : BULKY_CALL_COST),
    limits,
    slicedRequests:
      sliced?.sliced === "requests" ? new SlicedField(method.input, sliced.fieldPath) : undefined,
    slicedResponses:
      sliced?.sliced === "responses" ? new SlicedField(method.output, sliced.fieldPath) : undefined,
  };
};
