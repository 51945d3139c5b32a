// Remembers on disk which FileServer holds which root, as long as the MetaServer allows (decision T20).
import type { Clock } from "#base/clock.ts";
import { ROUTE_TTL_SECONDS } from "#base/limits.ts";
import { readStored, writeStored } from "#client/signin/stored-json.ts";
import { ROUTES_KEPT_MAX } from "#client/terminal/limits.ts";
import { removePrivateFile } from "#os/private-file.ts";

/** The FileServer of a root, with the route's expiry. */
export interface Route {
  /** Username that owns the root; empty for one's own. */
  readonly root: string;
  /** host:port of the FileServer. */
  readonly address: string;
  readonly fsId: string;
  /** Wall time until which it may be used without asking again. */
  readonly expiresAtMs: number;
}

/** The routes of one user at one cluster. */
export class RouteCache {
  /** Undefined for routes of this process alone. */
  readonly #path: string | undefined;
  readonly #clock: Pick<Clock, "wallMs">;
  #routes: Map<string, Route> | undefined;

  constructor(path: string | undefined, clock: Pick<Clock, "wallMs">) {
    this.#path = path;
    this.#clock = clock;
  }

  /** The route to a root, undefined when none is known or it has expired. */
  async get(root: string): Promise<Route | undefined> {
    await this.#load();
    return this.known(root);
  }

  /** The same of what has been read; undefined before. */
  known(root: string): Route | undefined {
    const route = this.#routes?.get(root);
    const leftMs = route === undefined ? 0 : route.expiresAtMs - this.#clock.wallMs();
    // A clock that was set back must not make a route last for ever.
    return leftMs > 0 && leftMs <= ROUTE_TTL_SECONDS * 1_000 ? route : undefined;
  }

  /** The last known route to a root, however old; undefined when none is known. */
  async last(root: string): Promise<Route | undefined> {
    return (await this.#load()).get(root);
  }

  /** Every route that has not expired. */
  async list(): Promise<Route[]> {
    const roots = [...(await this.#load()).keys()];
    const routes = await Promise.all(roots.map((root) => this.get(root)));
    return routes.filter((route) => route !== undefined);
  }

  /** Keeps a route for ttlSeconds, at most twelve hours. */
  async put(route: Omit<Route, "expiresAtMs">, ttlSeconds: number): Promise<Route> {
    const routes = await this.#load();
    const lifeMs = Math.min(ttlSeconds, ROUTE_TTL_SECONDS) * 1_000;
    const kept: Route = { ...route, expiresAtMs: this.#clock.wallMs() + lifeMs };
    routes.delete(route.root);
    routes.set(route.root, kept);
    for (const oldest of routes.keys()) {
      if (routes.size <= ROUTES_KEPT_MAX) break;
      routes.delete(oldest);
    }
    await this.#save(routes);
    return kept;
  }

  /** Forgets the route to a root. */
  async remove(root: string): Promise<void> {
    const routes = await this.#load();
    if (routes.delete(root)) await this.#save(routes);
  }

  /** Forgets everything. */
  async clear(): Promise<void> {
    this.#routes = new Map();
    if (this.#path !== undefined) await removePrivateFile(this.#path);
  }

  async #load(): Promise<Map<string, Route>> {
    if (this.#routes !== undefined) return this.#routes;
    const routes = new Map<string, Route>();
    const file = this.#path === undefined ? undefined : await readStored(this.#path);
    const stored = file?.fields("routes");
    for (const root of stored?.names() ?? []) {
      const fields = stored?.fields(root);
      const address = fields?.text("address");
      const expiresAtMs = fields?.integer("expires_at_ms");
      if (address === undefined || expiresAtMs === undefined) continue;
      routes.set(root, { root, address, fsId: fields?.text("fs_id") ?? "", expiresAtMs });
    }
    this.#routes ??= routes;
    return this.#routes;
  }

  async #save(routes: ReadonlyMap<string, Route>): Promise<void> {
    if (this.#path === undefined) return;
    await writeStored(this.#path, {
      routes: Object.fromEntries(
        [...routes].map(([root, route]) => [
          root,
          { address: route.address, fs_id: route.fsId, expires_at_ms: route.expiresAtMs },
        ]),
      ),
    });
  }
}
