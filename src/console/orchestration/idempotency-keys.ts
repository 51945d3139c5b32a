// Idempotency keys: a repeated key of one operator is one request, also while it is in progress (spec 4.7).
import { isDeepStrictEqual } from "node:util";
import type { ActionOperator } from "./action-job.ts";
import { ActionRefusal } from "./action-refusal.ts";
import { masked } from "./output-mask.ts";

/** The fields of an accepted request's record. */
interface KeyedRecord {
  readonly request: Readonly<Record<string, unknown>>;
  readonly operator: { readonly session: string };
}

/** Dependencies; T is the outcome of a request. */
export interface IdempotencyKeysDeps<T> {
  readonly recordOf: (taken: T) => KeyedRecord;
  /** Finds an accepted request among the records. */
  readonly known: (isMeant: (record: KeyedRecord) => boolean) => T | undefined;
  /** Values that records mask, left out of comparisons. */
  readonly secrets: () => readonly string[];
}

/** The requests of one kind. */
export class IdempotencyKeys<T> {
  readonly #deps: IdempotencyKeysDeps<T>;
  /** Requests whose records are not written yet. */
  readonly #taking = new Map<string, Promise<T>>();

  constructor(deps: IdempotencyKeysDeps<T>) {
    this.#deps = deps;
  }

  /**
   * Calls `take` for an unknown key, else returns the earlier outcome. Throws ActionRefusal for a key with
   * another request.
   */
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

/** The request as a file returns it: without undefined members. */
function plain(request: object): unknown {
  return JSON.parse(JSON.stringify(request));
}
