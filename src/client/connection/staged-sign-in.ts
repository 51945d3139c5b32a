// A sign-in that is not yet known to succeed, beside the one that holds: nothing of that one is touched before the new one stands.
import { systemClock } from "#base/clock.ts";
import { ROUTE_TTL_SECONDS } from "#base/limits.ts";
import type { Profile } from "#client/signin/profile.ts";
import { ClientContext } from "./client-context.ts";
import { IdentityHolder } from "./identity-holder.ts";
import { type Route, RouteCache } from "./route-cache.ts";
import { SessionCache, type StoredIdentity, type StoredSession } from "./session-cache.ts";
import { endListedSessions } from "./sign-out.ts";

/** Sessions that live in this process until they are taken over. */
class StagedSessions extends SessionCache {
  readonly #sessions = new Map<string, StoredSession>();
  /** Sessions of the same user at the same cluster; undefined for those of anybody else. */
  before: SessionCache | undefined;

  override async replacedToken(address: string): Promise<string> {
    return (await this.before?.readSession(address))?.token ?? "";
  }

  override readIdentity(): Promise<StoredIdentity | undefined> {
    return Promise.resolve(undefined);
  }

  override readSession(address: string): Promise<StoredSession | undefined> {
    return Promise.resolve(this.#sessions.get(address));
  }

  override writeSession(session: StoredSession): Promise<void> {
    this.#sessions.set(session.address, session);
    return Promise.resolve();
  }

  override removeSession(address: string): Promise<void> {
    this.#sessions.delete(address);
    return Promise.resolve();
  }

  override whileOpening<T>(_address: string, action: () => Promise<T>): Promise<T> {
    return action();
  }

  override listSessions(): Promise<StoredSession[]> {
    return Promise.resolve([...this.#sessions.values()]);
  }
}

/** One sign-in on its way. */
export class StagedSignIn {
  /** What opens the new session: nothing that it does is written down. */
  readonly context: ClientContext;
  readonly #around: ClientContext;
  readonly #profile: Profile;
  readonly #routes: RouteCache;
  readonly #sessions: StagedSessions;

  private constructor(around: ClientContext, profile: Profile, identity: StoredIdentity) {
    this.#around = around;
    this.#profile = profile;
    this.#routes = new RouteCache(undefined, systemClock);
    const sessions = new StagedSessions(around.config.credentials);
    this.#sessions = sessions;
    const { config, place, signal } = around.shared;
    const shared = {
      config,
      place,
      signal,
      sessions,
      identity: new IdentityHolder(sessions, systemClock),
      routes: this.#routes,
      profile: Promise.resolve(profile),
      cluster: undefined,
    };
    shared.identity.hold(identity);
    this.context = new ClientContext(around.terminal, around.flags, shared);
  }

  /**
   * Begins one. Where the same user was signed in at the same cluster before, the way to the files is known, so that a new session can be had
   * while no metaserver answers.
   */
  static async begin(
    around: ClientContext,
    profile: Profile,
    identity: StoredIdentity,
  ): Promise<StagedSignIn> {
    const staged = new StagedSignIn(around, profile, identity);
    const before = await around.identity.current();
    const stored = await around.storedProfile().catch(() => undefined);
    if (before === undefined || before.username !== identity.username) return staged;
    if (stored === undefined || !isSameCluster(stored, profile)) return staged;
    staged.#sessions.before = around.sessions;
    const known = await lastHome(around, identity.username);
    // It has run out from the start: a metaserver that answers knows better.
    if (known !== undefined) await staged.#routes.put(known, 0);
    return staged;
  }

  /** Puts the new session in the place of whatever was there, and then tells the servers that the sessions before have ended. */
  async takeOver(session: StoredSession, identity: StoredIdentity): Promise<void> {
    const { config, sessions, place, identity: holder, signal } = this.#around;
    const before = await sessions.listSessions();
    const profileBefore = await this.#around.storedProfile();
    const opened = await this.context.sessions.listSessions();
    const routes = new RouteCache(config.routes, systemClock);
    await routes.clear();
    const { writeProfile } = await import("#client/signin/profile.ts");
    await writeProfile(config.profile, this.#profile);
    for (const made of opened) await sessions.writeSession(made);
    await sessions.writeIdentity(identity);
    const found: readonly Omit<Route, "expiresAtMs">[] = await this.#routes.list();
    const home = { root: "", address: session.address, fsId: "" };
    for (const route of found.length === 0 ? [home] : found) await routes.put(route, ROUTE_TTL_SECONDS);
    for (const { address } of before) {
      if (!opened.some((made) => made.address === address)) await sessions.removeSession(address);
    }
    await place.clear();
    holder.hold(identity);
    this.#around.useProfile(this.#profile);
    await endListedSessions(before, profileBefore, signal);
  }

  /** Closes its connections. */
  async close(): Promise<void> {
    const cluster = await this.context.shared.cluster?.catch(() => undefined);
    cluster?.close();
  }
}

/** True where both lead to the same servers, with as much proof that they are these. */
function isSameCluster(one: Profile, other: Profile): boolean {
  const isOneOfThem = one.metaservers.some((address) => other.metaservers.includes(address));
  return isOneOfThem && one.ca === other.ca && one.mock === other.mock;
}

/** Where the user's own root was when the user was last there. */
async function lastHome(
  { config, sessions }: ClientContext,
  username: string,
): Promise<Omit<Route, "expiresAtMs"> | undefined> {
  const route = await new RouteCache(config.routes, systemClock).last("");
  if (route !== undefined) return route;
  // A visitor's session elsewhere names no root.
  const session = (await sessions.listSessions()).find(
    (stored) => stored.username === username && stored.rootId !== "",
  );
  return session === undefined ? undefined : { root: "", address: session.address, fsId: "" };
}
