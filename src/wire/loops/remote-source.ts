// A request stream whose messages arrive in another thread: their heads come here, their payload stays there.
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { hasMoreFieldsThan } from "#wire/framing/message-fields.ts";
import { Code, MalformedMessageError, StatusError } from "#wire/framing/status.ts";
import type { ServedMethod } from "#wire/grpc/served-method.ts";
import type { SlicedMessage, SlicedSource } from "#wire/grpc/sliced.ts";

/** Messages that a loop sends before the first one is asked for: a header and what follows it. */
export const MESSAGES_UNASKED = 2;
/** Messages of a stream that flows which a loop sends before they are asked for. */
export const MESSAGES_AHEAD = 64;

/**
 * See SlicedSource. The consumer moves each payload by the call's link; `read` of a payload throws. The loop
 * sends no more heads than were asked for.
 */
export class RemoteSource implements SlicedSource<DescMessage> {
  readonly #served: Pick<ServedMethod, "input" | "limits">;
  readonly #pull: (count: number) => void;
  readonly #arrived: SlicedMessage<DescMessage>[] = [];
  #unasked = MESSAGES_UNASKED;
  #isFlowing = false;
  #used = 0;
  #hasEnded = false;
  #failure: StatusError | undefined;
  #wake: (() => void) | undefined;

  /** `pull` asks the loop for as many more messages. */
  constructor(served: Pick<ServedMethod, "input" | "limits">, pull: (count: number) => void) {
    this.#served = served;
    this.#pull = pull;
  }

  next(): SlicedMessage<DescMessage> | null | Promise<SlicedMessage<DescMessage> | null> {
    if (this.#isFlowing) this.#askForMany();
    else if (this.#unasked > 0) this.#unasked--;
    else this.#pull(1);
    return this.#take();
  }

  /** The loop now sends MESSAGES_AHEAD messages before they are asked for. */
  flow(): void {
    this.#isFlowing = true;
  }

  /** Takes the head of a message from the loop. Throws for one that cannot be decoded. */
  arrived(body: Uint8Array, payloadBytes: number): void {
    this.#arrived.push({
      message: decode(this.#served, body),
      payloadBytes,
      payload: { read: elsewhere, pour: elsewhere },
    });
    this.#stir();
  }

  /** The client has sent everything. */
  end(): void {
    this.#hasEnded = true;
    this.#stir();
  }

  /** Ends the stream with an error. */
  fail(error: StatusError): void {
    this.#failure ??= error;
    this.#arrived.length = 0;
    this.#stir();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SlicedMessage<DescMessage>, void, undefined> {
    for (let next = await this.next(); next !== null; next = await this.next()) yield next;
  }

  /** One question for many messages: it costs as much as one of them. */
  #askForMany(): void {
    this.#used++;
    if (this.#used < MESSAGES_AHEAD / 2) return;
    this.#pull(this.#used);
    this.#used = 0;
  }

  #take(): SlicedMessage<DescMessage> | null | Promise<SlicedMessage<DescMessage> | null> {
    if (this.#failure !== undefined) throw this.#failure;
    const first = this.#arrived.shift();
    if (first !== undefined) return first;
    if (this.#hasEnded) return null;
    return new Promise<void>((resolve) => {
      this.#wake = resolve;
    }).then(() => this.#take());
  }

  #stir(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

/** Decodes a message within the limits of its method. */
export function decode(
  { input, limits }: Pick<ServedMethod, "input" | "limits">,
  body: Uint8Array,
): MessageShape<DescMessage> {
  if (hasMoreFieldsThan(input, body, limits.receiveFields)) {
    throw new StatusError(Code.RESOURCE_EXHAUSTED, `message has more than ${limits.receiveFields} fields`);
  }
  try {
    return fromBinary(input, body, { readUnknownFields: false });
  } catch (cause) {
    throw new MalformedMessageError(`not a valid ${input.typeName}`, { cause });
  }
}

function elsewhere(): never {
  throw new StatusError(Code.INTERNAL, "the payload is in another thread");
}
