// Repeats requests to the object store with growing, jittered pauses, and finds out what lost answers did.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import { pause } from "#base/waiting.ts";
import { crc32 as crc32Of } from "#os/crc32.ts";
import type { ObjectFacts, ObjectPage, S3Client } from "./s3-client.ts";
import { isStoreProblem, StoreError } from "./store-error.ts";
import type { RequestBody } from "./store-exchange.ts";

/** How long a request is repeated before it fails in words. */
const STORE_TRIES_MS = 60_000;
const PAUSES_MS = { first: 50, longest: 5_000 };
/** A changed key is found at the second refusal; more would only lock it. */
const DENIALS_MAX = 2;
/** Times that the same bytes may arrive damaged before the way or the memory is at fault. */
const DAMAGES_MAX = 4;

/** Dependencies. */
export interface StoreRequestsDeps {
  readonly client: S3Client;
  readonly clock: Clock;
  /** From 0 to below 1, for the jitter. */
  readonly fraction: () => number;
  readonly logger: Logger;
  /** How long a request is repeated. */
  readonly triesMs?: number;
  /** Ends the pauses between tries. */
  readonly signal?: AbortSignal;
}

/** What is known of a stored object's past. */
export interface Stored {
  /** False when an attempt had no answer: its bytes may still arrive, long after. */
  readonly isCertain: boolean;
}

/** Requests that end in success, or in an error that another try now would meet as well. */
export class StoreRequests {
  readonly client: S3Client;
  readonly #deps: StoreRequestsDeps;
  #retries = 0;

  constructor(deps: StoreRequestsDeps) {
    this.client = deps.client;
    this.#deps = deps;
  }

  /** Requests that were repeated since the start. */
  get retriesTotal(): number {
    return this.#retries;
  }

  /**
   * Stores an object under a name that is not in use. An object that one of its own attempts left is
   * compared; another one is never written over.
   */
  async putNew(key: string, body: RequestBody, crc32: number): Promise<Stored> {
    let isCertain = true;
    await this.retried("PUT", async () => {
      try {
        await this.client.put(key, body, crc32, true);
      } catch (error) {
        if (isStoreProblem(error, "unreachable", "busy")) isCertain = false;
        if (!isStoreProblem(error, "taken")) throw error;
        if (!(await this.#isSame(key, body.byteCount, crc32))) {
          throw new StoreError("refused", "another object has the name of a new one", { cause: error });
        }
      }
    });
    return { isCertain };
  }

  /** Reads a range as a whole. */
  async getRange(key: string, start: number, length: number): Promise<Buffer> {
    return this.retried("GET", async () => {
      const bytes = Buffer.allocUnsafeSlow(length);
      let at = 0;
      await this.client.get(key, start, length, (piece) => {
        at += piece.copy(bytes, at);
      });
      return bytes;
    });
  }

  /** Undefined for a missing object. */
  async headOf(key: string): Promise<ObjectFacts | undefined> {
    return this.#orMissing(this.retried("HEAD", () => this.client.head(key)));
  }

  /** Undefined for a missing object. */
  async textOf(key: string): Promise<string | undefined> {
    return this.#orMissing(this.retried("GET", () => this.client.getText(key)));
  }

  /** Removes objects. Returns those that the store has not confirmed, with its code. */
  async deleteMany(keys: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.retried("DeleteObjects", () => this.client.deleteMany(keys));
  }

  /** A page of a listing, for a check. */
  async list(prefix: string, after: string): Promise<ObjectPage> {
    return this.retried("ListObjects", () => this.client.list(prefix, after));
  }

  /** Runs the request again while that may help. */
  async retried<T>(operation: string, request: () => Promise<T>): Promise<T> {
    const { clock, logger, signal, triesMs = STORE_TRIES_MS } = this.#deps;
    const endMs = clock.steadyMs() + triesMs;
    const counts = { denied: 0, damaged: 0 };
    for (let pauseMs = PAUSES_MS.first; ; pauseMs = Math.min(2 * pauseMs, PAUSES_MS.longest)) {
      try {
        return await request();
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        const waitMs = pauseMs * (0.5 + this.#deps.fraction() / 2);
        if (!mayRepeat(error, counts) || clock.steadyMs() + waitMs > endMs) throw error;
        this.#retries++;
        logger.debug("store.retry", { operation, problem: error.problem, code: error.storeCode });
        await pause(clock, waitMs, signal);
      }
    }
  }

  /** Whether the object has these bytes: by its checksum, or by reading it where the store tells none. */
  async #isSame(key: string, length: number, crc32: number): Promise<boolean> {
    const facts = await this.client.head(key);
    if (facts.length !== length) return false;
    if (facts.crc32 !== undefined) return facts.crc32 === crc32;
    let crc = 0;
    await this.client.get(key, 0, length, (piece) => {
      crc = crc32Of(piece, crc);
    });
    return crc === crc32;
  }

  async #orMissing<T>(request: Promise<T>): Promise<T | undefined> {
    try {
      return await request;
    } catch (error) {
      if (isStoreProblem(error, "missing")) return undefined;
      throw error;
    }
  }
}

function mayRepeat(error: StoreError, counts: { denied: number; damaged: number }): boolean {
  if (error.problem === "denied") return ++counts.denied < DENIALS_MAX;
  if (error.problem === "damaged") return ++counts.damaged < DAMAGES_MAX;
  return error.mayPass;
}
