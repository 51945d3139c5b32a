// One person's way to the cluster: sessions in memory, the calls of the client's own rooms.
import { randomUUID } from "node:crypto";
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { Cluster } from "#client/connection/cluster.ts";
import type { DoorSide } from "#client/connection/door-side.ts";
import { RouteCache } from "#client/connection/route-cache.ts";
import { Router } from "#client/connection/routing.ts";
import type { KeptSessions, StoredSession } from "#client/connection/session-cache.ts";
import type { Profile } from "#client/signin/profile.ts";
import { groupNameOf } from "#security/policy/group.ts";

/** How long a call is retried while a server does not answer: less than WebDAV programs wait. */
const PATIENCE_MS = 15_000;

/** What others share with a person, or a group of the person has. */
export interface SharedRoot {
  readonly owner: string;
  /** Absolute inside the owner's root. */
  readonly path: string;
  /** Name of the group in which the person has a role, where that is the reason. */
  readonly project?: string;
}

/** A person for whom a door speaks. */
export interface Person {
  readonly username: string;
  /** Calls on the servers that hold roots, with the person's sessions. */
  readonly cluster: Cluster;
  sharedRoots(): Promise<readonly SharedRoot[]>;
}

/** What a person's way is made from. */
export interface PersonDeps {
  readonly username: string;
  readonly profile: Profile;
  /** What opens a session, an ID token or a ticket: a valid one at each call. Rejects where there is none any more. */
  readonly credential: () => Promise<string>;
  /** Calls by tickets and over the door's certificate instead. */
  readonly door?: DoorSide;
  /** Ends all calls. */
  readonly signal: AbortSignal;
}

/** Makes a person's way. Close its cluster when nobody uses it any more. */
export function makePerson({ username, profile, credential, signal, door }: PersonDeps): Person {
  const identity = {
    idToken: credential,
    hasToken: () => Promise.resolve(true),
    requireUnchanged: () => Promise.resolve(),
  };
  const cache = new RouteCache(undefined, systemClock);
  const router = new Router({ profile, identity, cache, signal, door });
  const id = randomUUID();
  const cluster = new Cluster({
    profile,
    identity,
    signal,
    door,
    router,
    sessions: new MemorySessions(),
    installationId: () => Promise.resolve(id),
    random: systemRandom,
    clock: systemClock,
    patienceMs: PATIENCE_MS,
  });
  return {
    username,
    cluster,
    async sharedRoots() {
      // Without a MetaServer nobody knows who shares.
      if (profile.fileserver !== undefined) return [];
      const others = (await router.roots()).filter(({ owner }) => owner !== username);
      return others.map(({ owner, path, groupRole }) => {
        const project = groupRole === "" ? undefined : groupNameOf(owner);
        return { owner, path, ...(project === undefined ? {} : { project }) };
      });
    },
  };
}

/** Sessions that end with the process. */
class MemorySessions implements KeptSessions {
  readonly #sessions = new Map<string, StoredSession>();

  readSession(address: string): Promise<StoredSession | undefined> {
    return Promise.resolve(this.#sessions.get(address));
  }

  writeSession(session: StoredSession): Promise<void> {
    this.#sessions.set(session.address, session);
    return Promise.resolve();
  }

  removeSession(address: string): Promise<void> {
    this.#sessions.delete(address);
    return Promise.resolve();
  }

  replacedToken(): Promise<string> {
    return Promise.resolve("");
  }

  whileOpening<T>(_address: string, action: () => Promise<T>): Promise<T> {
    return action();
  }
}
