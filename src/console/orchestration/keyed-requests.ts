// Requests with an idempotency key: the same key of the same operator is the same request, also while that is only just taken on (spec 4.7).
import { isDeepStrictEqual } from "node:util";
import type { ActionOperator } from "./action-job.ts";
import { ActionRefusal } from "./action-refusal.ts";
import { masked } from "./output-mask.ts";

/** What is kept of a request that was taken on. */
interface KeyedRecord {
  readonly request: Readonly<Record<string, unknown>>;
  readonly operator: { readonly session: string };
}

/** What becomes of a request is a T. */
export interface KeyedRequestsDeps<T> {
  readonly recordOf: (taken: T) => KeyedRecord;
  /** Finds one among the records of what was taken on before. */
  readonly known: (isMeant: (record: KeyedRecord) => boolean) => T | undefined;
  /** What no record shows, and so none can be compared by. */
  readonly secrets: () => readonly string[];
}

/** The requests of one kind. */
export class KeyedRequests<T> {
  readonly #deps: KeyedRequestsDeps<T>;
  /** Those whose records are not written yet. */
  readonly #taking = new Map<string, Promise<T>>();

  constructor(deps: KeyedRequestsDeps<T>) {
    this.#deps = deps;
  }

  /** Calls `take` unless the request's key is known: then what it came to. Throws ActionRefusal when the key came with another request. */
  async once(
    request: { readonly idempotency_key?: string | undefined },
    operator: ActionOperator,
    take: () => Promise<T>,
  ): Promise<T> {
    const { idempotency_key: key } = request;
    if (key === undefined) return await take();
    const { known, recordOf, secrets } = this.#deps;
    const { session } = operator;
    const name = `${session}\n${key}`;
    const earlier =
      this.#taking.get(name) ??
      known(({ request: of, operator: by }) => of["idempotency_key"] === key && by.session === session);
    if (earlier !== undefined) {
      const taken = await earlier;
      if (isDeepStrictEqual(plain(recordOf(taken).request), plain(masked(request, secrets())))) return taken;
      throw new ActionRefusal("invalid", "this idempotency_key was used for another request");
    }
    const taking = take();
    this.#taking.set(name, taking);
    try {
      return await taking;
    } finally {
      this.#taking.delete(name);
    }
  }
}

/** As a file gives it back: without members that are undefined. */
function plain(request: object): unknown {
  return JSON.parse(JSON.stringify(request));
}
