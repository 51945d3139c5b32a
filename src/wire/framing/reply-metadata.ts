// The headers and trailers of a reply, as promises and to listeners.
import { Metadata } from "./metadata.ts";

/** Listeners that get headers and trailers at once. */
export interface ReplyListeners {
  readonly onHeaders?: (headers: Metadata) => void;
  readonly onTrailers?: (trailers: Metadata) => void;
}

/** Keeps both in raw form, and makes metadata of them only on request. */
export class ReplyMetadata {
  readonly #listeners: ReplyListeners;
  #headers: readonly string[] | undefined;
  #trailers: readonly string[] | undefined;
  #headersKnown: PromiseWithResolvers<Metadata> | undefined;
  #trailersKnown: PromiseWithResolvers<Metadata> | undefined;

  constructor(listeners: ReplyListeners) {
    this.#listeners = listeners;
  }

  /** Resolves with the response headers, empty ones when the call ended without. */
  get headers(): Promise<Metadata> {
    this.#headersKnown ??= Promise.withResolvers();
    if (this.#headers !== undefined) this.#headersKnown.resolve(Metadata.fromRaw(this.#headers));
    return this.#headersKnown.promise;
  }

  /** Resolves with the trailers at the end of the call, successful or not. */
  get trailers(): Promise<Metadata> {
    this.#trailersKnown ??= Promise.withResolvers();
    if (this.#trailers !== undefined) this.#trailersKnown.resolve(Metadata.fromRaw(this.#trailers));
    return this.#trailersKnown.promise;
  }

  /** Takes the received headers. */
  tookHeaders(raw: readonly string[]): void {
    this.#headers = raw;
    this.#listeners.onHeaders?.(Metadata.fromRaw(raw));
    this.#headersKnown?.resolve(Metadata.fromRaw(raw));
  }

  /** Takes the trailers at the end of the call. */
  ended(raw: readonly string[]): void {
    this.#trailers = raw;
    this.#headers ??= [];
    this.#headersKnown?.resolve(Metadata.fromRaw(this.#headers));
    this.#listeners.onTrailers?.(Metadata.fromRaw(raw));
    this.#trailersKnown?.resolve(Metadata.fromRaw(raw));
  }
}
