// What a node hears from the MetaServer about users beside its lease: whose addresses are, and who is locked out (D21).
import { errorText, type Logger } from "#base/log.ts";
import type { KnownUserStates } from "#fileserver/operations/user-operations.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { ReboundReader, type ReboundReaderDeps } from "./rebound-reader.ts";
import { type Exchange, exchangeUserStates } from "./user-state-exchange.ts";

/** What it is made from. */
export interface ClusterWordsDeps {
  readonly client: ReboundReaderDeps["client"] & Exchange["client"];
  readonly fsId: string;
  /** Takes an operator's word on whose addresses are (D21); undefined to ask for none. */
  readonly onRebound: ReboundReaderDeps["onRebound"] | undefined;
  /** What administrators have decided about users; undefined keeps the node out of it. */
  readonly userStates: KnownUserStates | undefined;
  readonly timeoutMs: number;
  readonly log: Logger;
}

/** Hears both. Never rejects: what was not heard is asked for with the next heartbeat that says there is something. */
export class ClusterWords {
  readonly #deps: ClusterWordsDeps;
  readonly #rebound: ReboundReader | undefined;

  #hasUserStates = false;

  constructor(deps: ClusterWordsDeps) {
    this.#deps = deps;
    const { onRebound } = deps;
    this.#rebound = onRebound === undefined ? undefined : new ReboundReader({ ...deps, onRebound });
  }

  /** What the node says with a heartbeat of what it knows. */
  get userStatesDigest(): string {
    return this.#deps.userStates?.digest ?? "";
  }

  /** True while all is known here that the MetaServer knew of users at the last contact. */
  get hasUserStates(): boolean {
    return this.#hasUserStates;
  }

  /** After a registration. */
  async hearAll(epoch: bigint): Promise<void> {
    await this.#readRebound(epoch);
    await this.#exchangeUserStates(epoch);
  }

  /** After a heartbeat. */
  async hearNews(
    epoch: bigint,
    news: { readonly subjectsVersion: bigint; readonly userStatesDiffer: boolean },
  ): Promise<void> {
    if (this.#rebound?.isBehind(news.subjectsVersion) === true) await this.#readRebound(epoch);
    if (news.userStatesDiffer) await this.#exchangeUserStates(epoch);
    else this.#hasUserStates = true;
  }

  async #readRebound(epoch: bigint): Promise<void> {
    try {
      await this.#rebound?.read(epoch);
    } catch (error) {
      this.#tell("rebound_users_not_read", error);
    }
  }

  async #exchangeUserStates(epoch: bigint): Promise<void> {
    const { userStates } = this.#deps;
    if (userStates === undefined) return;
    try {
      await exchangeUserStates(userStates, { ...this.#deps, epoch });
      this.#hasUserStates = true;
    } catch (error) {
      this.#hasUserStates = false;
      this.#tell("user_states_not_exchanged", error);
    }
  }

  /** A MetaServer of an older Grove has nothing to say. */
  #tell(event: string, error: unknown): void {
    const isOlder = error instanceof StatusError && error.code === Code.UNIMPLEMENTED;
    this.#deps.log[isOlder ? "debug" : "warn"](event, { error: errorText(error) });
  }
}
