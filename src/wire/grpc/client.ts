// The gRPC client: channels with a connection to one of several addresses, and typed clients over them.

import type {
  DescMessage,
  DescMethod,
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { type Clock, systemClock } from "#base/clock.ts";
import { systemFraction } from "#base/random.ts";
import { MessageBudget } from "#wire/framing/frames.ts";
import { Decompressor } from "#wire/framing/gzip.ts";
import {
  type Backoff,
  type ChannelKeepalive,
  type ChannelLimits,
  DEFAULT_BACKOFF,
  DEFAULT_CHANNEL_LIMITS,
} from "#wire/framing/limits.ts";
import type { Metadata } from "#wire/framing/metadata.ts";
import type { RequestEncoder } from "#wire/framing/requests.ts";
import type { ReplyDecoder } from "#wire/framing/single-message.ts";
import { type HeadEncoder, SlicedField } from "#wire/framing/sliced-field.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { CallWaiter, ChannelCore, ClientInterceptor } from "./channel-core.ts";
import { type CallOptions, ClientCall } from "./client-call.ts";
import { connectFirst } from "./first-server.ts";
import type { SlicedSource, SlicedWriter } from "./sliced.ts";
import type { ChannelTls, Transport, TransportDeps } from "./transport.ts";

/** Options of a channel; without tls it uses plain HTTP/2. */
export interface GrpcChannelOptions {
  /** Each `host:port`, tried in order until one answers; after a second of silence the next in parallel. */
  readonly addresses: readonly string[];
  readonly tls?: ChannelTls;
  readonly limits?: Partial<ChannelLimits>;
  readonly keepalive?: ChannelKeepalive;
  readonly backoff?: Partial<Backoff>;
  readonly clock?: Clock;
  /** Between 0 and 1, for the jitter of the waiting times. */
  readonly random?: () => number;
  readonly interceptors?: readonly ClientInterceptor[];
}

/** State of a channel: in `transient-failure` no address answered and the waiting time runs. */
export type ChannelState = "idle" | "connecting" | "ready" | "transient-failure" | "shutdown";

/** The replies of a streaming call. Leaving a loop over them early cancels the call. */
export interface ResponseStream<T> extends AsyncIterable<T> {
  readonly headers: Promise<Metadata>;
  /** Resolves at the end of the call, with OK or not. */
  readonly trailers: Promise<Metadata>;
}

/** An upload in the sliced form. */
export interface SlicedUpload<I extends DescMessage, O extends DescMessage> {
  readonly writer: SlicedWriter<I>;
  /** Ends the requests, and resolves to the reply. */
  finish(): Promise<MessageShape<O>>;
  /** Gives the call up, which the server learns at once. */
  cancel(): void;
}

/** A download in the sliced form. */
export interface SlicedDownload<O extends DescMessage> extends SlicedSource<O> {
  readonly headers: Promise<Metadata>;
  readonly trailers: Promise<Metadata>;
  cancel(): void;
}

/** The call of a method on a client. */
export type ClientMethod<M extends DescMethod> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options?: CallOptions) => Promise<MessageShape<O>>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, options?: CallOptions) => ResponseStream<MessageShape<O>>
      : M extends DescMethodClientStreaming<infer I, infer O>
        ? (requests: AsyncIterable<MessageInitShape<I>>, options?: CallOptions) => Promise<MessageShape<O>>
        : M extends DescMethodBiDiStreaming<infer I, infer O>
          ? (
              requests: AsyncIterable<MessageInitShape<I>>,
              options?: CallOptions,
            ) => ResponseStream<MessageShape<O>>
          : never;

/** The methods of a service by their local names. Errors are StatusError. */
export type Client<S extends DescService> = { [P in keyof S["method"]]: ClientMethod<S["method"][P]> };

const HOLD_INTERVAL_MS = 3_600_000;

/** A connection to one of several addresses, made when first needed and again when lost. */
export class GrpcChannel {
  readonly #addresses: readonly string[];
  readonly #backoff: Backoff;
  readonly #random: () => number;
  readonly #core: ChannelCore;
  #transportDeps: TransportDeps;
  readonly #waiters = new Set<CallWaiter>();
  readonly #transports = new Set<Transport>();
  #current: Transport | undefined;
  /** Connections made so far. */
  #connections = 0;
  /** Index of the address to try first: the last one that answered. */
  #from = 0;
  #state: ChannelState = "idle";
  #failures = 0;
  #lastError: StatusError | undefined;
  #cancelBackoff: (() => void) | undefined;
  #giveUpConnecting: (() => void) | undefined;
  #hold: NodeJS.Timeout | undefined;

  constructor(options: GrpcChannelOptions) {
    if (options.addresses.length === 0) throw new TypeError("a channel needs an address");
    const limits = { ...DEFAULT_CHANNEL_LIMITS, ...options.limits };
    const clock = options.clock ?? systemClock;
    this.#addresses = options.addresses;
    this.#backoff = { ...DEFAULT_BACKOFF, ...options.backoff };
    this.#random = options.random ?? systemFraction;
    this.#transportDeps = {
      tls: options.tls,
      limits,
      keepalive: options.keepalive,
      clock,
      onUnusable: (transport) => this.#lost(transport),
      onClosed: (transport) => this.#transports.delete(transport),
    };
    this.#core = {
      limits,
      clock,
      budget: new MessageBudget(limits.heldMessageBytes),
      unfolder: new Decompressor(limits),
      interceptors: options.interceptors ?? [],
      current: () => (this.#current?.isUsable === true ? this.#current : undefined),
      wait: (waiter) => this.#wait(waiter),
      forget: (waiter) => {
        this.#waiters.delete(waiter);
        this.#holdProcess();
      },
    };
  }

  get state(): ChannelState {
    return this.#state;
  }

  /**
   * Uses new certificates from now on: the next call makes a new connection, calls in progress finish on the
   * old one. Calls that wait for a connection try the new ones at once.
   */
  updateTls(tls: ChannelTls): void {
    if (this.#transportDeps.tls === undefined) throw new TypeError("the channel was made without TLS");
    this.#transportDeps = { ...this.#transportDeps, tls };
    this.#current?.retire();
    if (this.#state !== "transient-failure") return;
    this.#cancelBackoff?.();
    this.#failures = 0;
    this.#state = "idle";
    this.#holdProcess();
    if (this.#waiters.size > 0) void this.#connect();
  }

  /**
   * Runs a repeatable unary call. When it fails with an error that `isElsewhere` accepts, the other addresses
   * are tried in order; later calls use the one that succeeded. Rejects with the last failure.
   */
  async onAnyServer<T>(
    operation: () => Promise<T>,
    isElsewhere: (error: StatusError) => boolean,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      // Without a connection, the next one gets the call.
      const asked = this.#current === undefined ? this.#connections + 1 : this.#connections;
      try {
        return await operation();
      } catch (error) {
        if (tries >= this.#addresses.length || !(error instanceof StatusError) || !isElsewhere(error))
          throw error;
        // Other calls may have switched already.
        const current = this.#current;
        if (current === undefined || asked !== this.#connections) continue;
        this.#from = (this.#addresses.indexOf(current.address) + 1) % this.#addresses.length;
        current.retire();
      }
    }
  }

  /** Closes the channel: active and waiting calls fail, and no handle keeps the process alive. */
  close(): void {
    this.#state = "shutdown";
    this.#cancelBackoff?.();
    this.#giveUpConnecting?.();
    const error = new StatusError(Code.CANCELLED, "the channel was closed");
    for (const waiter of this.#waiters) waiter.failed(error);
    this.#waiters.clear();
    this.#holdProcess();
    for (const transport of this.#transports) transport.destroy();
    this.#transports.clear();
  }

  /**
   * Starts a client-stream call whose requests end in the bytes field `fieldPath`; resolves once writable.
   * `encodeHead` replaces the general encoder of what precedes that field.
   */
  async slicedUpload<I extends DescMessage, O extends DescMessage>(
    method: DescMethodClientStreaming<I, O>,
    fieldPath: string,
    options?: CallOptions,
    encodeHead?: HeadEncoder,
  ): Promise<SlicedUpload<I, O>> {
    const call = new ClientCall(this.#core, method, options);
    const writer = await call.startSlicedUpload(new SlicedField(method.input, fieldPath, encodeHead));
    return {
      writer,
      finish: () => call.finishSlicedUpload() as Promise<MessageShape<O>>,
      cancel: () => call.cancel(),
    };
  }

  /** Starts a server-stream call whose responses end in the bytes field `fieldPath`. */
  slicedDownload<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    fieldPath: string,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): SlicedDownload<O> {
    const call = new ClientCall(this.#core, method, options);
    const inbox = call.startStream(request, new SlicedField(method.output, fieldPath));
    const source = inbox as unknown as SlicedSource<O>;
    return {
      next: () => source.next(),
      [Symbol.asyncIterator]: () => source[Symbol.asyncIterator](),
      headers: call.replyMetadata.headers,
      trailers: call.replyMetadata.trailers,
      cancel: () => call.cancel(),
    };
  }

  /** A unary call that returns the reply's bytes, for callers with their own decoder. */
  unaryBytes<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): Promise<Buffer> {
    return new ClientCall(this.#core, method, options).startUnary(request, asItIs) as Promise<Buffer>;
  }

  /** Starts a call of any kind for createClient. */
  call(
    method: DescMethod,
    request: unknown,
    options: CallOptions | undefined,
    { decode, encode }: MethodCodec = {},
  ): unknown {
    const call = new ClientCall(this.#core, method, options);
    if (method.methodKind === "unary" || method.methodKind === "client_streaming")
      return call.startUnary(request, decode, encode);
    const inbox = call.startStream(request, undefined);
    return {
      headers: call.replyMetadata.headers,
      trailers: call.replyMetadata.trailers,
      [Symbol.asyncIterator]: () => inbox[Symbol.asyncIterator](),
    };
  }

  #wait(waiter: CallWaiter): void {
    if (this.#state === "shutdown") {
      waiter.failed(new StatusError(Code.CANCELLED, "the channel was closed"));
    } else if (this.#state === "transient-failure" && !waiter.waitForReady) {
      waiter.failed(this.#lastError ?? new StatusError(Code.UNAVAILABLE, "no connection"));
    } else if (this.#waiters.size >= this.#core.limits.maxWaitingCalls) {
      waiter.failed(new StatusError(Code.UNAVAILABLE, "too many calls wait for a connection"));
    } else {
      this.#waiters.add(waiter);
      if (this.#state === "idle" || this.#state === "ready") void this.#connect();
      else this.#holdProcess();
    }
  }

  /** Tries every address once. */
  async #connect(): Promise<void> {
    this.#state = "connecting";
    const deps = this.#transportDeps;
    const started = (giveUp: () => void): void => {
      this.#giveUpConnecting = giveUp;
    };
    try {
      const found = await connectFirst({ addresses: this.#addresses, from: this.#from, deps, started });
      this.#giveUpConnecting = undefined;
      if (this.isShutDown) return found.transport.destroy();
      // New certificates came meanwhile.
      if (deps !== this.#transportDeps) {
        found.transport.destroy();
        return await this.#connect();
      }
      this.#transports.add(found.transport);
      this.#from = found.at;
      return this.#connected(found.transport);
    } catch (error) {
      if (this.isShutDown) return;
      this.#lastError = error as StatusError;
    }
    this.#backOff();
  }

  /** True after close(). */
  get isShutDown(): boolean {
    return this.#state === "shutdown";
  }

  #connected(transport: Transport): void {
    this.#state = "ready";
    this.#failures = 0;
    this.#current = transport;
    this.#connections++;
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiters) waiter.ready(transport);
  }

  #backOff(): void {
    this.#state = "transient-failure";
    const { initialMs, maxMs, multiplier, jitter } = this.#backoff;
    const baseMs = Math.min(initialMs * multiplier ** this.#failures, maxMs);
    this.#failures++;
    const error = this.#lastError ?? new StatusError(Code.UNAVAILABLE, "no connection");
    for (const waiter of this.#waiters) {
      if (waiter.waitForReady) continue;
      this.#waiters.delete(waiter);
      waiter.failed(error);
    }
    const delayMs = baseMs * (1 + jitter * (this.#random() * 2 - 1));
    this.#cancelBackoff = this.#core.clock.after(delayMs, () => {
      this.#state = "idle";
      this.#holdProcess();
      if (this.#waiters.size > 0) void this.#connect();
    });
    this.#holdProcess();
  }

  /** Timers of the clock keep no process alive, but a call that waits for the next attempt must. */
  #holdProcess(): void {
    const isNeeded = this.#state === "transient-failure" && this.#waiters.size > 0;
    if (isNeeded) this.#hold ??= setInterval(() => undefined, HOLD_INTERVAL_MS);
    else {
      clearInterval(this.#hold);
      this.#hold = undefined;
    }
  }

  #lost(transport: Transport): void {
    if (this.#current !== transport) return;
    this.#current = undefined;
    if (this.#state === "ready") this.#state = "idle";
  }
}

/** What replaces the general encoder and decoder of a method. */
interface MethodCodec {
  readonly decode?: ReplyDecoder | undefined;
  readonly encode?: RequestEncoder | undefined;
}

const asItIs: ReplyDecoder = (body) => body;

/** A typed client of a service, with faster decoders for some replies and encoders for some requests. */
export const createClient = <S extends DescService>(
  service: S,
  channel: GrpcChannel,
  decoders?: ReadonlyMap<DescMessage, ReplyDecoder>,
  encoders?: ReadonlyMap<DescMessage, RequestEncoder>,
): Client<S> => {
  const client: Record<string, unknown> = {};
  for (const method of service.methods) {
    const codec: MethodCodec = { decode: decoders?.get(method.output), encode: encoders?.get(method.input) };
    client[method.localName] = (request: unknown, options?: CallOptions) =>
      channel.call(method, request, options, codec);
  }
  return client as Client<S>;
};
