// The demonstration provider's records: in memory, bounded, gone with the process.
import type { Clock } from "#base/clock.ts";
import type { ProviderAdapter, StoredPayload } from "./provider-library.ts";

/** Records of all kinds together; the oldest go first. A sign-in needs about six. */
const RECORDS_MAX = 10_000;

interface Stored {
  readonly payload: StoredPayload;
  readonly endsSteadyMs: number;
}

/** The records of a provider, all kinds in one map by `kind:id`. */
export class ProviderMemory {
  readonly #records = new Map<string, Stored>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The adapter for one kind of record, in the library's form. */
  adapterFor(kind: string): ProviderAdapter {
    const key = (id: string): string => `${kind}:${id}`;
    return {
      upsert: async (id, payload, expiresInSeconds) => this.#put(key(id), payload, expiresInSeconds),
      find: async (id) => this.#get(key(id)),
      findByUid: async (uid) => this.#search(kind, (payload) => payload.uid === uid),
      findByUserCode: async (userCode) => this.#search(kind, (payload) => payload.userCode === userCode),
      consume: async (id) => {
        const payload = this.#get(key(id));
        if (payload !== undefined) payload.consumed = Math.floor(this.#clock.wallMs() / 1_000);
      },
      destroy: async (id) => void this.#records.delete(key(id)),
      revokeByGrantId: async (grantId) => {
        for (const [name, { payload }] of this.#records) {
          if (payload.grantId === grantId) this.#records.delete(name);
        }
      },
    };
  }

  #put(name: string, payload: StoredPayload, expiresInSeconds: number): void {
    this.#records.delete(name);
    if (this.#records.size >= RECORDS_MAX) this.#makeRoom();
    const endsSteadyMs = this.#clock.steadyMs() + expiresInSeconds * 1_000;
    this.#records.set(name, { payload, endsSteadyMs });
  }

  #get(name: string): StoredPayload | undefined {
    const stored = this.#records.get(name);
    if (stored === undefined || stored.endsSteadyMs > this.#clock.steadyMs()) return stored?.payload;
    this.#records.delete(name);
    return undefined;
  }

  #search(kind: string, isWanted: (payload: StoredPayload) => boolean): StoredPayload | undefined {
    for (const [name, { payload }] of this.#records) {
      if (name.startsWith(`${kind}:`) && isWanted(payload)) return this.#get(name);
    }
    return undefined;
  }

  #makeRoom(): void {
    const nowMs = this.#clock.steadyMs();
    for (const [name, { endsSteadyMs }] of this.#records) {
      if (endsSteadyMs <= nowMs) this.#records.delete(name);
    }
    const oldest = this.#records.keys().next();
    if (this.#records.size >= RECORDS_MAX && oldest.done !== true) this.#records.delete(oldest.value);
  }
}
