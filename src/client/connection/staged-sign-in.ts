// Keeps a sign-in separate until it succeeds: the current one stays untouched before that.
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
  /** Sessions of the same user at the same cluster; undefined for those of another user. */
  before: SessionCache | undefined;
  readonly #identity: StoredIdentity;

  constructor(folder: string, identity: StoredIdentity) {
    super(folder);
    this.#identity = identity;
  }

  override async replacedToken(address: string): Promise<string> {
    return (await this.before?.readSession(address))?.token ?? "";
  }

  override readIdentity(): Promise<StoredIdentity | undefined> {
    return Promise.resolve(this.#identity);
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

/** One sign-in in progress. */
export class StagedSignIn {
  /** The context that opens the new session; nothing of it is written to disk. */
  readonly context: ClientContext;
  readonly #around: ClientContext;
  readonly #profile: Profile;
  readonly #routes: RouteCache;
  readonly #sessions: StagedSessions;

  private constructor(around: ClientContext, profile: Profile, identity: StoredIdentity) {
    this.#around = around;
    this.#profile = profile;
    this.#routes = new RouteCache(undefined, systemClock);
    const sessions = new StagedSessions(around.config.credentials, identity);
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
    this.context = new ClientContext(around.terminal, around.flags, shared);
  }

  /**
   * Begins a sign-in. A user who was signed in at the same cluster keeps the known route. A new session can
   * then be opened while no metaserver answers.
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
    // The route is expired from the start, so a metaserver's answer replaces it.
    if (known !== undefined) await staged.#routes.put(known, 0);
    return staged;
  }

  /** Replaces the stored session and identity, then ends the sessions before at their servers. */
  async takeOver(session: StoredSession, identity: StoredIdentity): Promise<void> {
    const { config, sessions, place, identity: holder, signal } = this.#around;
    const before = await sessions.listSessions();
    const profileBefore = await this.#around.storedProfile();
    const opened = await this.context.sessions.listSessions();
    const routes = new RouteCache(config.routes, systemClock);
    await routes.clear();
    const { writeProfile } = await import("#client/signin/profile.ts");
    await writeProfile(config.profile, this.#profile);
    // Nobody takes over another user's session in between: programs look whose identity lies here first.
    for (const { address } of before) await sessions.removeSession(address);
    await sessions.writeIdentity(identity);
    for (const made of opened) await sessions.writeSession(made);
    const found: readonly Omit<Route, "expiresAtMs">[] = await this.#routes.list();
    const home = { root: "", address: session.address, fsId: "" };
    for (const route of found.length === 0 ? [home] : found) await routes.put(route, ROUTE_TTL_SECONDS);
    await place.clear();
    holder.hold(identity, true);
    this.#around.useProfile(this.#profile);
    await endListedSessions(before, profileBefore, signal);
  }

  /** Closes its connections. */
  async close(): Promise<void> {
    const cluster = await this.context.shared.cluster?.catch(() => undefined);
    cluster?.close();
  }
}

/** True when both profiles name the same servers with the same proof of their identity. */
function isSameCluster(one: Profile, other: Profile): boolean {
  const isOneOfThem = one.metaservers.some((address) => other.metaservers.includes(address));
  return isOneOfThem && one.ca === other.ca && one.mock === other.mock;
}

/** The last known address of the user's own root. */
async function lastHome(
  { config, sessions }: ClientContext,
  username: string,
): Promise<Omit<Route, "expiresAtMs"> | undefined> {
  const route = await new RouteCache(config.routes, systemClock).last("");
  if (route !== undefined) return route;
  // A session on another server without a root names none.
  const session = (await sessions.listSessions()).find(
    (stored) => stored.username === username && stored.rootId !== "",
  );
  return session === undefined ? undefined : { root: "", address: session.address, fsId: "" };
}
