// Holds the signed-in identity and the ID token that opens sessions, as long as it is valid.
import type { Clock } from "#base/clock.ts";
import { readClaims } from "#client/signin/id-token.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import type { SessionCache, StoredIdentity } from "./session-cache.ts";

/** A token that expires within this time is no longer used. */
const LEEWAY_MS = 5_000;

/** Reads the identity once and keeps it for the run of the program; a later sign-in of the same user renews its token. */
export class IdentityHolder {
  readonly #cache: SessionCache;
  readonly #clock: Pick<Clock, "wallMs">;
  #identity: StoredIdentity | undefined;
  #isRead = false;
  /** True for an identity that lies on disk, where other programs may replace it. */
  #isStored = false;

  constructor(cache: SessionCache, clock: Pick<Clock, "wallMs">) {
    this.#cache = cache;
    this.#clock = clock;
  }

  /** The signed-in identity; undefined without one. */
  async current(): Promise<StoredIdentity | undefined> {
    if (!this.#isRead) {
      const identity = await this.#cache.readIdentity();
      if (!this.#isRead) {
        this.#identity = identity;
        this.#isStored = true;
      }
      this.#isRead = true;
    }
    return this.#identity;
  }

  /** Holds an identity for this run; `isStored` for one that `login` has stored itself. */
  hold(identity: StoredIdentity, isStored = false): void {
    this.#identity = identity;
    this.#isStored = isStored;
    this.#isRead = true;
  }

  /**
   * Throws SIGN_IN_NEEDED where the user of this program has signed out in another one meanwhile, or somebody else has
   * signed in: what lies on disk from then on is not this user's.
   */
  async requireUnchanged(): Promise<void> {
    const isFirst = !this.#isRead;
    const before = await this.current();
    if (isFirst || !this.#isStored) return;
    const now = await this.#cache.readIdentity();
    if (before === undefined) this.#identity = now;
    else if (now?.username !== before.username) {
      const what = now === undefined ? "has signed out" : `is signed in no more, ${now.username} is`;
      throw new ClientError("SIGN_IN_NEEDED", `${before.username} ${what}, by another command`, {
        todo: "Sign in again: grove login",
      });
    }
  }

  /** True when a server would still take the ID token. */
  async hasToken(): Promise<boolean> {
    return (await this.#token()) !== undefined;
  }

  /** The ID token. Throws SIGN_IN_NEEDED with the reason when no valid one is stored. */
  async idToken(why: string): Promise<string> {
    const token = await this.#token();
    if (token !== undefined) return token;
    const identity = await this.current();
    if (identity === undefined) throw new ClientError("SIGN_IN_NEEDED", "you are not signed in");
    const what =
      identity.idToken === undefined
        ? "your sign-in was not remembered"
        : "your sign-in at the identity provider has expired";
    throw new ClientError("SIGN_IN_NEEDED", `${why}, and ${what}`, { todo: "Sign in again: grove login" });
  }

  /** A usable token: the one at hand, or that of a sign-in by another command since. */
  async #token(): Promise<string | undefined> {
    const before = await this.current();
    const token = this.#usableToken(before);
    if (token !== undefined || before?.idToken === undefined || !this.#isStored) return token;
    const now = await this.#cache.readIdentity();
    if (now?.idToken === undefined || now.username !== before.username) return undefined;
    // Another cluster may know the user by the same address, and its tokens are none of this one's business.
    if (!isOfSameClient(before.idToken, now.idToken)) return undefined;
    this.#identity = now;
    return this.#usableToken(now);
  }

  #usableToken(identity: StoredIdentity | undefined): string | undefined {
    if (identity?.idToken === undefined) return undefined;
    const { expiresAtMs } = identity;
    const isValid = expiresAtMs === undefined || expiresAtMs - LEEWAY_MS > this.#clock.wallMs();
    return isValid ? identity.idToken : undefined;
  }
}

/** True where both tokens are of one identity provider, for one client of it. */
function isOfSameClient(first: string, second: string): boolean {
  try {
    const [one, other] = [readClaims(first), readClaims(second)];
    return one.issuer === other.issuer && one.audience === other.audience;
  } catch {
    return false;
  }
}
