// A method as the server keeps it: name, types and handler.
import type { DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import { BULKY_CALL_COST, type ReceiveLimits } from "#wire/framing/limits.ts";
import type { ReplyDecoder } from "#wire/framing/single-message.ts";
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

/** A handler of requests that another thread decodes, with its types erased. */
export interface AnyForwardingHandler {
  /** Takes the bytes of the request's message. */
  readonly forwards: AnyHandler;
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
  /** Replaces the general decoder of a single request. */
  readonly decode: ReplyDecoder | undefined;
  readonly slicedRequests: SlicedField<DescMessage> | undefined;
  readonly slicedResponses: SlicedField<DescMessage> | undefined;
}

/** Whether one side of a method is a stream of messages. */
export const isStreaming = (kind: CalledMethod["kind"], direction: "requests" | "replies"): boolean =>
  kind === "bidi_streaming" || kind === (direction === "requests" ? "client_streaming" : "server_streaming");

/** Options of a service. */
export interface ServiceOptions<S extends DescService> {
  /** Another full name for the service. */
  readonly name?: string;
  /** Limits of the request messages by method; default the server's own. */
  readonly requests?: Partial<Record<keyof S["method"], Partial<ReceiveLimits>>>;
  /** Limits for methods that `requests` leaves out. */
  readonly otherRequests?: Partial<ReceiveLimits>;
  /** Cost of methods that take the loop for longer than most, in usual calls (`call-scheduler.ts`). */
  readonly costs?: Partial<Record<keyof S["method"], number>>;
}

type ErasedHandler = Parameters<typeof serve>[1];

/** Adds the methods of a service to those that are served. Throws TypeError for one that is served already. */
export function serveAll<S extends DescService>(
  methods: Map<string, ServedMethod>,
  service: S,
  handlers: object,
  { name = service.typeName, requests = {}, otherRequests, costs = {} }: ServiceOptions<S>,
  { receiveMessageBytes, receiveFields }: ReceiveLimits,
): void {
  const ofMethods: Readonly<Record<string, Partial<ReceiveLimits> | undefined>> = requests;
  const costOf: Readonly<Record<string, number | undefined>> = costs;
  for (const method of service.methods) {
    const handler = (handlers as Readonly<Record<string, ErasedHandler>>)[method.localName];
    const own = ofMethods[method.localName] ?? otherRequests;
    const served = serve(method, handler, name, {
      limits: { receiveMessageBytes, receiveFields, ...own },
      cost: costOf[method.localName],
    });
    if (methods.has(served.called.path)) throw new TypeError(`${served.called.path} is served already`);
    methods.set(served.called.path, served);
  }
}

/** Combines a method and its handler. Throws TypeError when a sliced handler names no bytes field. */
export const serve = (
  method: DescMethod,
  handler:
    | AnyHandler
    | AnyInstantHandler
    | AnyBulkyHandler
    | AnySlicedHandler
    | AnyForwardingHandler
    | undefined,
  service: string,
  { limits, cost }: { readonly limits: ReceiveLimits; readonly cost?: number | undefined },
): ServedMethod => {
  const sliced = typeof handler === "object" && "sliced" in handler ? handler : undefined;
  const instant = typeof handler === "object" && "instant" in handler ? handler.instant : undefined;
  const forwarding = typeof handler === "object" && "forwards" in handler ? handler : undefined;
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
    handler:
      typeof handler === "function" ? handler : (sliced?.handler ?? instant ?? bulky ?? forwarding?.forwards),
    isBulky: bulky !== undefined,
    cost: cost ?? (bulky !== undefined || sliced !== undefined ? BULKY_CALL_COST : 1),
    limits,
    decode: forwarding === undefined ? undefined : (body) => body,
    slicedRequests:
      sliced?.sliced === "requests" ? new SlicedField(method.input, sliced.fieldPath) : undefined,
    slicedResponses:
      sliced?.sliced === "responses" ? new SlicedField(method.output, sliced.fieldPath) : undefined,
  };
};
