// What must hold at every moment and at the end, over the processes, the databases and the MetaServer's store.
import type { Campaign } from "#prove/campaign.ts";
import type { Cluster } from "./cluster.ts";
import { FILES } from "./stored-roots.ts";

/** See above. Reports one broken promise, the first. */
export class Judge {
  readonly #cluster: Cluster;
  readonly #campaign: Campaign;
  readonly #report: (text: string) => void;
  /** By owner, the highest value of each file that was acknowledged. */
  readonly #acknowledged = new Map<string, number[]>();
  /** By owner, since when no process serves the root. */
  readonly #unservedMs = new Map<string, number>();
  isBroken = false;

  constructor(cluster: Cluster, campaign: Campaign, report: (text: string) => void) {
    this.#cluster = cluster;
    this.#campaign = campaign;
    this.#report = report;
    for (const owner of cluster.owners)
      this.#acknowledged.set(
        owner,
        Array.from({ length: FILES }, () => 0),
      );
  }

  acknowledged(owner: string, file: number, value: number): void {
    const least = this.#acknowledged.get(owner) ?? [];
    least[file] = Math.max(value, least[file] ?? 0);
  }

  /** How long no process has served a root. */
  unservedMs(owner: string): number {
    return this.#cluster.world.nowMs - (this.#unservedMs.get(owner) ?? this.#cluster.world.nowMs);
  }

  /** What holds at every moment. */
  look(): void {
    for (const owner of this.#cluster.owners) {
      const least = this.#acknowledged.get(owner) ?? [];
      const stored = this.#cluster.stored(owner);
      // A root whose source has heard of the switch first has its rows at the target, and no row of its own yet.
      if (stored.length > 0 && !stored.some((values) => isAtLeast(values, least)))
        this.broken(`${owner} has ${texts(stored)} after ${text(least)} was acknowledged`);
      const serving: string[] = [];
      for (const process of this.#cluster.processes) {
        const said = process.read(owner);
        if (said === "refused") continue;
        serving.push(process.name);
        this.#campaign.count("reads");
        if (said === "nothing") this.broken(`${process.name} serves ${owner} and has fetched nothing of it`);
        else if (!isAtLeast(said, least))
          this.broken(`${process.name} says ${text(said)} of ${owner} after ${text(least)} was acknowledged`);
      }
      if (serving.length > 1) this.broken(`${owner} is served by ${serving.join(" and ")}`);
      if (serving.length > 0) this.#unservedMs.delete(owner);
      else if (!this.#unservedMs.has(owner)) this.#unservedMs.set(owner, this.#cluster.world.nowMs);
    }
  }

  /** Roots that are not served by the one process that the store sends to, in words. */
  astray(): string[] {
    const { meta, sites, owners } = this.#cluster;
    const places = new Map(meta.directory?.listRoots(meta.now).map(({ owner, fsId }) => [owner, fsId]));
    return owners.flatMap((owner) => {
      const serving = sites.filter(
        ({ process }) => process !== undefined && process.read(owner) !== "refused",
      );
      const ids = serving.map(({ folder }) => folder.id);
      if (ids.length !== 1)
        return [`${owner} is served by ${ids.length === 0 ? "no process" : ids.join(" and ")}`];
      const place = places.get(owner);
      return place === ids[0] ? [] : [`${owner} is served by ${ids[0]}, and the store sends to ${place}`];
    });
  }

  /** What holds once all faults and moves have ended. */
  atEnd(): void {
    const { sites, owners, database } = this.#cluster;
    for (const text of this.astray()) this.broken(text);
    for (const owner of owners) {
      if (this.#cluster.stored(owner).length !== 1)
        this.broken(`rows of ${owner} are in ${this.#cluster.stored(owner).length} places`);
    }
    for (const text of database.left()) this.broken(text);
    for (const { stored, process, folder } of sites) {
      if (stored === undefined) continue;
      process?.tidy();
      for (const text of [...stored.orphans(), ...stored.drift()]) this.broken(`on ${folder.id} ${text}`);
    }
  }

  broken(text: string): void {
    if (this.isBroken) return;
    this.isBroken = true;
    this.#report(text);
  }
}

function isAtLeast(values: readonly number[], least: readonly number[]): boolean {
  return least.every((value, file) => (values[file] ?? 0) >= value);
}

const text = (values: readonly number[]): string => `[${values.join(" ")}]`;
const texts = (all: readonly (readonly number[])[]): string => all.map(text).join(" or ");
