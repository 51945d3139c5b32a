// Reads a request's body when it is asked for, and drops the rest when nobody wants it.
import type { DoorRequest } from "./request-target.ts";

/** Bytes that arrive before they are asked for, at most, and one part of the socket's beyond them. */
const AHEAD_MAX_BYTES = 262_144;
/** What holding a part costs besides its bytes: a body in chunks of one byte has as many parts. */
const PART_COST_BYTES = 256;
/** Bytes for which who waits is woken before the end: two parts of a socket. A wake costs more than their way. */
const WAKE_BYTES = 131_072;

/** The body of one request, pulled part by part. */
export class BodyReader {
  readonly #request: DoorRequest;
  readonly #onArrived: (bytes: number) => void;
  #parts: Uint8Array[] = [];
  /** Bytes of the parts, with what holding each costs. */
  #weight = 0;
  #state: "unread" | "open" | "dropping" | "ended" | "broken" = "unread";
  #wake = Promise.withResolvers<void>();
  #onDropped: (bytes: number) => void = () => {};
  #refusal: Error | undefined;

  /** Tells of the bytes of each part as it comes. */
  constructor(request: DoorRequest, onArrived: (bytes: number) => void) {
    this.#request = request;
    this.#onArrived = onArrived;
    request.on("error", () => this.#break());
  }

  /** True where the client may still be sending. */
  get isUnfinished(): boolean {
    const { readableEnded, destroyed } = this.#request;
    return this.#state !== "ended" && this.#state !== "broken" && !readableEnded && !destroyed;
  }

  /** True once a part was asked for. */
  get isBegun(): boolean {
    return this.#state !== "unread";
  }

  /** Has who waits for the body refused. */
  refuse(refusal: Error): void {
    this.#refusal = refusal;
    this.#wake.resolve();
  }

  /** A part that needs no wait; undefined where none has come, and for who is to be refused. */
  taken(): Uint8Array | undefined {
    const part = this.#refusal === undefined ? this.#parts.shift() : undefined;
    if (part === undefined) return undefined;
    this.#weight -= weightOf(part);
    if (this.#weight < AHEAD_MAX_BYTES) this.#request.resume();
    return part;
  }

  /** The next part; undefined after the last. Rejects where the connection ended before the body, or by a refusal. */
  async next(): Promise<Uint8Array | undefined> {
    if (this.#state === "unread") this.#open();
    for (;;) {
      if (this.#refusal !== undefined) throw this.#refusal;
      const part = this.taken();
      if (part !== undefined) return part;
      if (this.#state === "ended") return undefined;
      if (this.#state !== "open") throw new Error("the connection ended before the body did");
      this.#wake = Promise.withResolvers();
      await this.#wake.promise;
    }
  }

  /** Reads on and forgets what comes; tells how much. */
  drop(onDropped: (bytes: number) => void): void {
    if (this.#state === "unread") this.#open();
    if (this.#state !== "open") return;
    this.#state = "dropping";
    this.#parts = [];
    this.#onDropped = onDropped;
    this.#request.resume();
  }

  #open(): void {
    this.#state = this.#request.destroyed && !this.#request.readableEnded ? "broken" : "open";
    const request = this.#request;
    request.on("data", (part: Uint8Array) => {
      if (this.#state === "dropping") return this.#onDropped(part.length);
      this.#parts.push(part);
      this.#weight += weightOf(part);
      this.#onArrived(part.length);
      if (this.#weight >= AHEAD_MAX_BYTES) request.pause();
      if (this.#weight >= WAKE_BYTES) this.#wake.resolve();
    });
    request.on("end", () => {
      // HTTP/2 also ends the body of a stream that was reset, or whose connection is gone.
      if ("stream" in request && request.aborted) return this.#break();
      this.#state = "ended";
      this.#wake.resolve();
    });
    request.on("close", () => this.#break());
  }

  #break(): void {
    if (this.#state === "ended") return;
    this.#state = "broken";
    this.#wake.resolve();
  }
}

const weightOf = ({ length }: Uint8Array): number => length + PART_COST_BYTES;
