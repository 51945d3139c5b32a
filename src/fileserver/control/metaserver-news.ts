// Asks each MetaServer with which keys it signs tickets, and which credentials have ended.
import { createPublicKey, type KeyObject } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { endsOfUser } from "#base/door-call.ts";
import { GroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { ShownCredential, TicketNews } from "#fileserver/doors/ticket-news.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { GetTicketNewsResponse, MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** How often MetaServers are asked while people are here through doors. */
export const TICKET_NEWS_INTERVAL_MS = 2_000;
/** Pause between questions that a stranger's ticket causes. */
const ASK_PAUSE_MS = 1_000;
const CALL_TIMEOUT_MS = 2_000;
/** Keys of one MetaServer, while one is replaced. */
const KEYS_PER_METASERVER = 2;
/** Ends of credentials that are known, at most. */
const ENDED_MAX = 20_000;

type Asked = Pick<Client<typeof MetaServer>, "getTicketNews">;

/** What one MetaServer has said last. */
interface Said {
  mark: string;
  keys: readonly (readonly [string, KeyObject])[];
}

/** Dependencies of the news. */
export interface MetaServerNewsDeps {
  /** A client for each of them: each signs with a key of its own. */
  readonly clients: readonly Asked[];
  readonly fsId: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The news of all MetaServers. Until the first door comes, nobody is asked. */
export class MetaServerNews implements TicketNews {
  readonly #deps: MetaServerNewsDeps;
  readonly #said = new Map<Asked, Said>();
  #keys: ReadonlyMap<string, KeyObject> = new Map();
  /** Wall times of the ends, by credential, and by user where all older sessions of one have ended. */
  readonly #ended = new Map<string, number>();
  #allBeforeMs = 0;
  #clusterId = "";
  #heardMs = Number.NEGATIVE_INFINITY;
  #askedMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;
  #onNews: () => void = () => undefined;
  #stop: (() => void) | undefined;

  constructor(deps: MetaServerNewsDeps) {
    this.#deps = deps;
  }

  get clusterId(): string {
    return this.#clusterId;
  }

  get keys(): ReadonlyMap<string, KeyObject> {
    return this.#keys;
  }

  get heardMs(): number {
    return this.#heardMs;
  }

  async fresh(): Promise<void> {
    if (this.#age() <= TICKET_NEWS_INTERVAL_MS) return;
    await this.#ask();
    if (this.#age() <= TICKET_NEWS_INTERVAL_MS) return;
    throw new GroveError("STORE_UNAVAILABLE", "no metaserver says which tickets count; try again");
  }

  async ask(): Promise<void> {
    if (this.#deps.clock.steadyMs() - this.#askedMs >= ASK_PAUSE_MS) await this.#ask();
    else await this.#asking;
  }

  isEnded({ credential, username, ticketIssuedMs }: ShownCredential): boolean {
    if (ticketIssuedMs < this.#allBeforeMs || this.#ended.has(credential)) return true;
    return ticketIssuedMs < (this.#ended.get(endsOfUser(username)) ?? 0);
  }

  follow(isNeeded: () => boolean, onNews: () => void): void {
    this.#onNews = onNews;
    this.#stop?.();
    this.#stop = this.#deps.clock.every(TICKET_NEWS_INTERVAL_MS, () => {
      if (isNeeded()) void this.#ask();
    });
  }

  /** Stops asking. */
  async close(): Promise<void> {
    this.#stop?.();
    await this.#asking;
  }

  #age(): number {
    return this.#deps.clock.steadyMs() - this.#heardMs;
  }

  #ask(): Promise<void> {
    this.#asking ??= this.#askAll().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** Never rejects. */
  async #askAll(): Promise<void> {
    const { clients, clock } = this.#deps;
    this.#askedMs = clock.steadyMs();
    await Promise.all(clients.map((client) => this.#askOne(client)));
    this.#keys = new Map([...this.#said.values()].flatMap(({ keys }) => keys));
    this.#onNews();
  }

  async #askOne(client: Asked): Promise<void> {
    const { fsId, clock, log } = this.#deps;
    const said = this.#said.get(client) ?? { mark: "", keys: [] };
    // What was revoked while the question was on its way is in the next answer.
    const askedMs = clock.steadyMs();
    try {
      const answer = await client.getTicketNews({ fsId, mark: said.mark }, { timeoutMs: CALL_TIMEOUT_MS });
      this.#take(answer);
      this.#said.set(client, { mark: answer.mark, keys: keysOf(answer) });
      this.#heardMs = Math.max(this.#heardMs, askedMs);
    } catch (error) {
      log.debug("ticket_news_not_heard", { error: errorText(error) });
    }
  }

  #take({ unchanged, ended, allBeforeMs, clusterId }: GetTicketNewsResponse): void {
    if (clusterId !== "") this.#clusterId = clusterId;
    if (unchanged) return;
    // An end is for good, and an older answer of another MetaServer takes none back.
    for (const { credential, atMs } of ended) {
      const endedMs = Math.max(Number(atMs), this.#ended.get(credential) ?? 0);
      // What is told last is forgotten last.
      this.#ended.delete(credential);
      this.#ended.set(credential, endedMs);
    }
    for (const credential of this.#ended.keys()) {
      if (this.#ended.size <= ENDED_MAX) break;
      this.#ended.delete(credential);
    }
    this.#allBeforeMs = Math.max(this.#allBeforeMs, Number(allBeforeMs));
  }
}

function keysOf({ keys }: GetTicketNewsResponse): (readonly [string, KeyObject])[] {
  return keys.slice(0, KEYS_PER_METASERVER).flatMap(({ id, publicKey }) => {
    try {
      const key = createPublicKey({ key: Buffer.from(publicKey), format: "der", type: "spki" });
      return key.asymmetricKeyType === "ed25519" ? [[id, key] as const] : [];
    } catch {
      return [];
    }
  });
}
