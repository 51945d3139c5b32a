// Joins who somebody is with their files: a person is kept while they come back, and asked about again in time.
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { constantTimeEqual } from "#base/constant-time.ts";
import { DOOR_SESSION_PREFIX } from "#base/door-call.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { refusalOf } from "#client/connection/refusal.ts";
import type { Profile } from "#client/signin/profile.ts";
import type { BasicCredentials } from "#door/http/basic-credentials.ts";
import type { DoorPeople, DoorPerson } from "#door/http/door-people.ts";
import type { BrowserPeople, BrowserPerson } from "#door/pages/browser-person.ts";
import type { OwnAppPasswords, OwnSessions, People } from "#door/people/people.ts";
import type { OpenedSession, SessionKeeper, SigningIn } from "#door/session/browser-people.ts";
import { GroveTree } from "#door/tree/grove-tree.ts";
import { makePerson, type Person } from "#door/tree/person.ts";
import { davRefusalOf } from "#door/tree/refusals.ts";

/** People who are kept with their connections to FileServers. */
const PEOPLE_KEPT = 512;
/** A person is asked about again after this long, so that a revoked password ends here too. */
const ASK_AGAIN_MS = 30_000;
/** The same for a browser: a session that was ended elsewhere opens nothing here after as long as at FileServers. */
const ASK_AGAIN_BROWSER_MS = 5_000;
/** How long a person is taken for known while no MetaServer answers. */
const TRUSTED_WITHOUT_ANSWER_MS: number = 60 * 60_000;
/** How long somebody new waits for a MetaServer that does not answer: less than WebDAV programs wait. */
const SIGN_IN_PATIENCE_MS = 15_000;
/** Pause between two questions of that wait. */
const SIGN_IN_PAUSE_MS = 500;
/** How often sessions at FileServers are prolonged while requests are under way: a ticket is good for 5 min. */
const PROLONG_INTERVAL_MS = 60_000;
/** A session that nobody has prolonged for the life of its ticket has ended. */
const SESSION_LIFE_MS = 300_000;

/** Parts of it. */
export interface SignedInPeopleDeps {
  readonly people: People;
  /** With the door's certificate as it is at the moment. */
  readonly profile: Profile;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What somebody signs in with; a browser's session stands without a name. */
type Credentials = Omit<BasicCredentials, "username"> & { readonly username: string | undefined };

/** Who a MetaServer has said somebody is. */
type DoorIdentity = Awaited<ReturnType<People["identify"]>>;

/** Somebody who has signed in, with what they use. */
interface Kept {
  readonly username: string;
  readonly person: Person;
  readonly tree: GroveTree;
  readonly gone: AbortController;
  readonly recentUntilMs: number;
  readonly appPasswords: OwnAppPasswords;
  readonly sessions: OwnSessions;
  /** "app:" or "browser:", and the id. */
  readonly credential: string;
  askedMs: number;
  answeredMs: number;
  /** Steady time from which its sessions have their whole life before them. */
  prolongedMs: number;
  requests: number;
  isDropped: boolean;
}

/** People at a door, recognised by MetaServers. */
export class SignedInPeople implements DoorPeople, BrowserPeople, SessionKeeper {
  readonly #deps: SignedInPeopleDeps;
  readonly #kept = new LRUCache<string, Kept>({
    ...atMost(PEOPLE_KEPT),
    dispose: (kept) => drop(kept),
  });
  readonly #asking = new Map<string, Promise<Kept>>();
  readonly #endTimer: () => void;
  #isClosed = false;

  constructor(deps: SignedInPeopleDeps) {
    this.#deps = deps;
    this.#endTimer = deps.clock.every(PROLONG_INTERVAL_MS, () => this.#prolongUsed());
  }

  async signIn(credentials: BasicCredentials, address: string): Promise<DoorPerson> {
    // A browser's cookie is no password: a stolen one opens no drive that stays mounted.
    if (credentials.password.startsWith(DOOR_SESSION_PREFIX)) throw notFor("WebDAV");
    return await this.#enter(credentials, address);
  }

  /** The person behind a browser's session, as `signIn`. */
  async bySession(secret: string, address: string): Promise<BrowserPerson> {
    if (!secret.startsWith(DOOR_SESSION_PREFIX)) throw notFor("browsers");
    return await this.#enter(credentialsOf(secret), address);
  }

  /** Opens a browser's session; throws refusals of the MetaServer as GroveError. */
  async openSession(idToken: string, browser: SigningIn): Promise<OpenedSession> {
    return await judged(this.#deps.people.openSession(idToken, browser));
  }

  /** Ends a browser's session here at once, and in the cluster. */
  async endSession(secret: string, everywhere: boolean, address: string): Promise<void> {
    const { fingerprint } = credentialsOf(secret);
    for (const key of this.#kept.keys()) if (key.startsWith(`${fingerprint} `)) this.#kept.delete(key);
    try {
      await judged(this.#deps.people.endSession(secret, everywhere, address));
    } catch (error) {
      if (!isGroveError(error, "USER_DISABLED")) throw davRefusalOf(error) ?? error;
    }
  }

  async #enter(credentials: Credentials, address: string): Promise<BrowserPerson> {
    // Calls name the person's address, so another address is another way to the cluster.
    const key = `${credentials.fingerprint} ${address}`;
    const kept = await this.#current(key, credentials, address);
    kept.requests++;
    // Between two rounds a session may be near its end, which would cut a transfer that begins on it. One that has
    // ended is opened anew by who needs it.
    const sinceMs = this.#deps.clock.steadyMs() - kept.prolongedMs;
    if (sinceMs >= PROLONG_INTERVAL_MS && sinceMs < SESSION_LIFE_MS) this.#prolong(kept);
    return {
      username: kept.username,
      tree: kept.tree,
      cluster: kept.person.cluster,
      sharedRoots: () => kept.person.sharedRoots(),
      recentUntilMs: kept.recentUntilMs,
      appPasswords: kept.appPasswords,
      sessions: kept.sessions,
      release: () => {
        kept.requests--;
        if (kept.isDropped) closeUnused(kept);
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#endTimer();
    this.#kept.clear();
  }

  async #current(key: string, credentials: Credentials, address: string): Promise<Kept> {
    const kept = this.#kept.get(key);
    const nowMs = this.#deps.clock.steadyMs();
    const goodMs = kept?.credential.startsWith("browser:") === true ? ASK_AGAIN_BROWSER_MS : ASK_AGAIN_MS;
    if (kept !== undefined && nowMs - kept.askedMs < goodMs) return kept;
    let asking = this.#asking.get(key);
    if (asking === undefined) {
      asking = this.#ask(key, credentials, address).finally(() => this.#asking.delete(key));
      this.#asking.set(key, asking);
    }
    return await asking;
  }

  async #ask(key: string, credentials: Credentials, address: string): Promise<Kept> {
    const { people, clock } = this.#deps;
    const kept = this.#kept.get(key);
    const askedMs = clock.steadyMs();
    try {
      const identify = (): Promise<DoorIdentity> => people.identify(credentials.password, address);
      const known = await (kept === undefined ? this.#patiently(identify) : identify());
      if (credentials.username !== undefined) requireName(credentials.username, known.username);
      if (kept !== undefined) {
        kept.askedMs = askedMs;
        kept.answeredMs = askedMs;
        return kept;
      }
      const made = this.#make(known, askedMs);
      this.#kept.set(key, made);
      return made;
    } catch (error) {
      const refusal = await refusalOf(error, "metaserver");
      const isJudged = isGroveError(refusal, "TOKEN_REJECTED", "USER_DISABLED", "CLIENT_CERT_REQUIRED");
      if (!isJudged && kept !== undefined && askedMs - kept.answeredMs < TRUSTED_WITHOUT_ANSWER_MS) {
        kept.askedMs = askedMs;
        return kept;
      }
      this.#kept.delete(key);
      throw davRefusalOf(refusal) ?? refusal;
    }
  }

  /** Asks again while no MetaServer answers, such as one that is restarted. */
  async #patiently(identify: () => Promise<DoorIdentity>): Promise<DoorIdentity> {
    const { clock } = this.#deps;
    const untilMs = clock.steadyMs() + SIGN_IN_PATIENCE_MS;
    for (;;) {
      try {
        return await identify();
      } catch (error) {
        const refusal = await refusalOf(error, "metaserver");
        const isSilent =
          davRefusalOf(refusal)?.status === 503 || isGroveError(refusal, "STARTING", "STORE_UNAVAILABLE");
        if (!isSilent || clock.steadyMs() >= untilMs || this.#isClosed) throw refusal;
      }
      await new Promise<void>((resolve) => clock.after(SIGN_IN_PAUSE_MS, resolve));
    }
  }

  #make(known: DoorIdentity, askedMs: number): Kept {
    const { profile, clock } = this.#deps;
    const gone = new AbortController();
    const { username } = known;
    const credential = (): Promise<string> =>
      Promise.reject(new GroveError("SESSION_MISSING", "a door has no ID token"));
    const person = makePerson({ username, profile, credential, door: known, signal: gone.signal });
    const tree = new GroveTree(person, clock);
    return {
      username,
      person,
      tree,
      gone,
      recentUntilMs: known.recentUntilMs,
      appPasswords: judgedPasswords(known.appPasswords),
      sessions: this.#ownSessions(known.sessions),
      credential: known.credential,
      askedMs,
      answeredMs: askedMs,
      prolongedMs: askedMs,
      requests: 0,
      isDropped: false,
    };
  }

  /** Sessions that end here at once, too; their refusals are thrown as what they say. */
  #ownSessions(own: OwnSessions): OwnSessions {
    return {
      list: () => judged(own.list()),
      end: async (id) => {
        const ended = await judged(own.end(id));
        const credentials = new Set(ended.map((session) => `browser:${session.id}`));
        for (const [key, { credential }] of this.#kept)
          if (credentials.has(credential)) this.#kept.delete(key);
        return ended;
      },
    };
  }

  #prolongUsed(): void {
    for (const kept of this.#kept.values()) if (kept.requests > 0) this.#prolong(kept);
  }

  #prolong(kept: Kept): void {
    kept.prolongedMs = this.#deps.clock.steadyMs();
    kept.person.cluster.prolong().catch((error: unknown) => {
      this.#deps.log.debug("session_not_prolonged", { error: errorText(error) });
    });
  }
}

/** A call to a MetaServer whose refusal is thrown as what it says. */
async function judged<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw await refusalOf(error, "metaserver");
  }
}

/** App passwords whose refusals are thrown as what they say. */
function judgedPasswords(own: OwnAppPasswords): OwnAppPasswords {
  return {
    make: (wish) => judged(own.make(wish)),
    list: () => judged(own.list()),
    revoke: (which) => judged(own.revoke(which)),
  };
}

function credentialsOf(secret: string): Credentials {
  const fingerprint = createHash("sha256").update(`browser ${secret}`).digest("base64");
  return { username: undefined, password: secret, fingerprint };
}

function notFor(whom: string): GroveError {
  return new GroveError("TOKEN_REJECTED", `this credential is not for ${whom}`);
}

/** Throws TOKEN_REJECTED for a name that is not the person's; an empty one is a wrong one. */
function requireName(given: string, known: string): void {
  if (constantTimeEqual(given.normalize("NFC").toLowerCase(), known.toLowerCase())) return;
  throw new GroveError("TOKEN_REJECTED", "the app password belongs to another name");
}

function drop(kept: Kept): void {
  kept.isDropped = true;
  closeUnused(kept);
}

function closeUnused(kept: Kept): void {
  if (kept.requests > 0) return;
  kept.gone.abort();
  kept.person.cluster.close();
}
