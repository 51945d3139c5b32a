// Takes in the MetaServer's news about users: rebound addresses, decisions such as locks (D21), and groups.
import { errorText, type Logger } from "#base/log.ts";
import type { KnownUserStates } from "#fileserver/operations/user-operations.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { GroupReader } from "./group-reader.ts";
import { type ReboundAddress, ReboundReader, type ReboundReaderDeps } from "./rebound-reader.ts";
import { type Exchange, exchangeUserStates } from "./user-state-exchange.ts";

/** Dependencies of the receiver. */
export interface UserUpdatesDeps {
  readonly client: ReboundReaderDeps["client"] & Exchange["client"];
  readonly fsId: string;
  /** Applies an operator's rebinding of addresses (D21); undefined to ask for none. */
  readonly onRebound: ReboundReaderDeps["onRebound"] | undefined;
  /** Administrators' decisions about users; undefined keeps the node out of their exchange. */
  readonly userStates: KnownUserStates | undefined;
  /** Hears of groups; undefined to ask for none. */
  readonly groups?: Pick<GroupReader, "hear" | "read"> | undefined;
  readonly timeoutMs: number;
  readonly log: Logger;
}

/** Receives both. Never rejects: a failed read is repeated with the next heartbeat that announces news. */
export class UserUpdates {
  readonly #deps: UserUpdatesDeps;
  readonly #rebound: ReboundReader | undefined;

  #hasUserStates = false;

  constructor(deps: UserUpdatesDeps) {
    this.#deps = deps;
    const { onRebound } = deps;
    this.#rebound =
      onRebound === undefined
        ? undefined
        : new ReboundReader({ ...deps, onRebound: (words) => this.#carryOut(words, onRebound) });
  }

  /** The digest of known decisions that a heartbeat carries. */
  get userStatesDigest(): string {
    return this.#deps.userStates?.digest ?? "";
  }

  /** True while all is known here that the MetaServer knew of users at the last contact. */
  get hasUserStates(): boolean {
    return this.#hasUserStates;
  }

  /** Reads everything after a registration. */
  async hearAll(epoch: bigint): Promise<void> {
    // Removals first: what a removed user left under an address goes to nobody with a change of it.
    await this.#exchangeUserStates(epoch);
    await this.#readRebound(epoch);
    await this.#deps.groups?.read();
  }

  /** Reads news after a heartbeat. */
  async hearNews(
    epoch: bigint,
    news: {
      readonly subjectsVersion: bigint;
      readonly userStatesDiffer: boolean;
      readonly groupsMark: string;
    },
  ): Promise<void> {
    if (news.userStatesDiffer) await this.#exchangeUserStates(epoch);
    else this.#hasUserStates = true;
    if (this.#rebound?.isBehind(news.subjectsVersion) === true) await this.#readRebound(epoch);
    await this.#deps.groups?.hear(news.groupsMark);
  }

  async #readRebound(epoch: bigint): Promise<void> {
    try {
      await this.#rebound?.read(epoch);
    } catch (error) {
      this.#tell("rebound_users_not_read", error);
    }
  }

  /** The operator hears that a new address is in use once its person's groups know it too. */
  async #carryOut(
    words: readonly ReboundAddress[],
    onRebound: ReboundReaderDeps["onRebound"],
  ): Promise<void> {
    await onRebound(words);
    if (words.some(({ formerUsername }) => formerUsername !== "")) await this.#deps.groups?.read();
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
