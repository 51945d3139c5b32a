// The MetaServer: the product's routes over its SQLite store, whose commands run at once.
import { join } from "node:path";
import { silentLogger } from "#base/log.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { SqliteStore } from "#metaserver/directory/sqlite-store.ts";
import { type ControlRoutesDeps, controlRoutes } from "#metaserver/process/control-routes.ts";
import { rootMoveRoutes } from "#metaserver/process/root-move-routes.ts";
import type { Served } from "./calls.ts";
import { type Machine, ProcessClock } from "./world.ts";

/** One process after the other on one store. */
export class SimulatedMetaServer {
  readonly #machine: Machine;
  readonly #path: string;
  #store: SqliteStore | undefined;
  #served: Served | undefined;

  constructor(machine: Machine, folder: string) {
    this.#machine = machine;
    this.#path = join(folder, "metadata.db");
    this.start();
  }

  /** What answers calls; undefined while nothing does. */
  get served(): Served | undefined {
    return this.#served;
  }

  /** The store as an operator reaches it; undefined while it is down. */
  get directory():
    | Pick<SqliteStore, "beginMove" | "decideMove" | "listRoots" | "nodes" | "rootMoves" | "setDrained">
    | undefined {
    return this.#store;
  }

  get now(): { readonly wallMs: number; readonly steadyMs: number } {
    return { wallMs: this.#machine.world.nowMs, steadyMs: this.#machine.steadyMs };
  }

  start(): void {
    if (this.#store !== undefined) return;
    const clock = new ProcessClock(this.#machine);
    const store = new SqliteStore(this.#path, this.now);
    this.#store = store;
    const directory = new Proxy({} as Directory, {
      get:
        (_, name) =>
        async (...values: readonly unknown[]) =>
          (store[name as keyof SqliteStore] as unknown as Command).call(store, this.now, ...values),
    });
    const deps = {
      directory,
      mock: true,
      clock,
      log: silentLogger,
      subjects: { heard: () => undefined },
      userStates: { states: { digest: "" } },
      groups: { mark: "" },
      rememberCluster: async () => undefined,
      rememberNode: async () => undefined,
    } as unknown as ControlRoutesDeps;
    this.#served = { clock, handlers: { ...controlRoutes(deps), ...rootMoveRoutes(deps) } };
  }

  kill(): void {
    if (this.#served !== undefined) this.#served.clock.isDead = true;
    this.#served = undefined;
    this.#store?.close();
    this.#store = undefined;
  }
}

type Command = (now: object, ...values: readonly unknown[]) => unknown;
