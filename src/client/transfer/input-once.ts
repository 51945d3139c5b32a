// Input that can be read once, such as standard input or a request's body: an operation may begin again while all
// of it that was taken is still kept.
import { ONCE, type RetryPolicy } from "#client/connection/cluster.ts";

/** A part of the input. */
type Part = Uint8Array | readonly Uint8Array[];

/** Input and the policy for the operation that reads it; dispose of it afterwards. */
export class InputOnce<T extends Part> implements AsyncIterable<T>, RetryPolicy, AsyncDisposable {
  readonly isRepeatable: boolean = ONCE.isRepeatable;
  readonly attempts: number = ONCE.attempts;
  readonly #source: AsyncIterator<T>;
  readonly #keptMax: number;
  /** The parts from the first on; undefined once they were more bytes than may be kept. */
  #kept: T[] | undefined = [];
  #keptBytes = 0;

  /** Keeps so many bytes from the beginning for a further attempt. */
  constructor(source: AsyncIterable<T>, keptMax: number) {
    this.#source = source[Symbol.asyncIterator]();
    this.#keptMax = keptMax;
  }

  /** True once a part that was taken cannot be read again. */
  get isConsumed(): boolean {
    return this.#kept === undefined;
  }

  /** All of the input from its beginning. Throws once it is consumed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    if (this.#kept === undefined) throw new Error("the input cannot be read again");
    yield* this.#kept;
    for (;;) {
      const next = await this.#nextOfSource();
      if (next.done === true) return;
      this.#keep(next.value);
      yield next.value;
    }
  }

  /** Ends the source. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#kept = undefined;
    await this.#source.return?.();
  }

  /** Input that has failed once is no shorter input to a further attempt. */
  async #nextOfSource(): Promise<IteratorResult<T>> {
    try {
      return await this.#source.next();
    } catch (error) {
      this.#kept = undefined;
      throw error;
    }
  }

  #keep(part: T): void {
    this.#keptBytes +=
      part instanceof Uint8Array ? part.length : part.reduce((sum, { length }) => sum + length, 0);
    if (this.#keptBytes > this.#keptMax) this.#kept = undefined;
    this.#kept?.push(part);
  }
}
