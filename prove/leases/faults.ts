// Faults of the simulated cluster: ways, machines, processes, the database and the MetaServer, each for a while.
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Cluster, Site } from "./cluster.ts";

const AWAY_MS = [200, 14_000] as const;

/** Kinds of faults. */
export const FAULTS = ["cut", "slow", "asleep", "stopped", "outage", "crash", "end", "meta crash"] as const;

/** Kind of a fault. */
export type FaultKind = (typeof FAULTS)[number];

/** Begins a fault; the answer ends it. */
export function befall(kind: FaultKind, cluster: Cluster, random: SeededRandom): () => void {
  const site = random.pick(cluster.sites);
  switch (kind) {
    case "cut":
    case "slow": {
      const flag = kind === "cut" ? "isCut" : "isSlow";
      const { database, meta, peers } = site.ways;
      const ways = random.pick([[database], [meta], [peers], [database, meta, peers]]);
      for (const way of ways) way[flag] = true;
      return () => {
        for (const way of ways) way[flag] = false;
      };
    }
    case "outage": {
      const ways = cluster.sites.map((each) => each.ways.database);
      for (const way of ways) way.isCut = true;
      return () => {
        for (const way of ways) way.isCut = false;
      };
    }
    case "crash":
      return crash(site);
    case "end":
      void site.process?.stop();
      return () => undefined;
    case "meta crash":
      cluster.meta.kill();
      return () => cluster.meta.start();
    default:
      site.machine.goAway(random.between(...AWAY_MS), kind);
      return () => undefined;
  }
}

/** Ends a process at once; the next one starts there after the end of the fault. */
export function crash(site: Site): () => void {
  site.process?.kill();
  site.isDown = true;
  return () => {
    site.isDown = false;
  };
}
