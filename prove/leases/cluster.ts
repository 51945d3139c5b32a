// The cluster of one seed: three machines of the shared engine, two nodes with disks, a MetaServer, users' roots.
import { CLUSTER_ROOT_NUMBERS_FROM } from "#base/limits.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import type { Way } from "./calls.ts";
import { EngineDatabase } from "./database.ts";
import { DiskNode } from "./disk-node.ts";
import { SimulatedMetaServer } from "./meta-server.ts";
import { EngineNode } from "./node.ts";
import type { NodeFolder, ProcessDeps, Ways } from "./process.ts";
import type { RigProcess } from "./rig-process.ts";
import { StoredRoots } from "./stored-roots.ts";
import { Machine, ProcessClock, World } from "./world.ts";

const ENGINE_NODES = 3;
const DISK_NODES = 2;
const ENGINE_ROOTS = 3;
const DISK_ROOTS = 2;
const CHUNK_NAME_DIGITS = 32;
const OBJECT_NAME_DIGITS = 34;
/** The process that held the engine's roots before: it has ended, as after an upgrade. */
const FIRST_HOLDER = "p0";

/** A machine with a node, whose processes follow one another. */
export interface Site {
  readonly machine: Machine;
  readonly ways: Ways;
  readonly folder: NodeFolder;
  /** The disk's rows; undefined for a node of the engine. */
  readonly stored: StoredRoots | undefined;
  process: RigProcess | undefined;
  /** Nothing starts here meanwhile. */
  isDown: boolean;
}

/** See above. */
export class Cluster {
  readonly world: World = new World();
  readonly database: EngineDatabase;
  readonly meta: SimulatedMetaServer;
  readonly sites: readonly Site[];
  readonly owners: readonly string[];
  readonly #random: SeededRandom;
  readonly #places: readonly StoredRoots[];
  #processes = 0;

  constructor(random: SeededRandom, folder: string) {
    this.#random = random;
    const names = random.fork("names");
    const newName = (digits: number) => (): string => names.bytes(digits / 2).toString("hex");
    this.database = new EngineDatabase(newName(OBJECT_NAME_DIGITS));
    this.meta = new SimulatedMetaServer(new Machine("meta", this.world), folder);
    this.sites = Array.from({ length: ENGINE_NODES + DISK_NODES }, (_, at) => {
      const isOnEngine = at < ENGINE_NODES;
      const id = isOnEngine ? `e${at}` : `d${at - ENGINE_NODES}`;
      return {
        machine: new Machine(id, this.world),
        ways: { database: clear(), meta: clear(), peers: clear() },
        folder: { id, address: `${id}.example.com:50051`, isOnEngine, lastProcess: "", clusterId: "" },
        stored: isOnEngine ? undefined : new StoredRoots(newName(CHUNK_NAME_DIGITS)),
        process: undefined,
        isDown: false,
      };
    });
    this.#places = [this.database.rows.stored, ...this.sites.flatMap(({ stored }) => stored ?? [])];
    this.owners = this.#makeRoots();
    for (const site of this.sites) this.begin(site);
  }

  #makeRoots(): string[] {
    const owners: string[] = [];
    this.database.instances.set(FIRST_HOLDER, { beat: 1, isEnded: true, leaseMs: 0 });
    for (let at = 0; at < ENGINE_ROOTS; at++) {
      const owner = `e${at}@example.com`;
      owners.push(owner);
      const number = this.database.rows.stored.makeRoot(owner);
      this.database.holdings.set(number, { instance: FIRST_HOLDER, epoch: 1 });
    }
    const disks = this.sites.flatMap(({ stored }) => stored ?? []);
    for (let at = 0; at < DISK_ROOTS; at++) {
      const owner = `d${at}@example.com`;
      owners.push(owner);
      disks[at % disks.length]?.makeRoot(owner, CLUSTER_ROOT_NUMBERS_FROM + 1_000 + at);
    }
    return owners;
  }

  processes: readonly RigProcess[] = [];

  /** Starts the next process of a node. */
  begin(site: Site): void {
    const { machine, ways, folder, stored } = site;
    const name = `p${++this.#processes}`;
    const deps: ProcessDeps = {
      name,
      folder,
      clock: new ProcessClock(machine),
      ways,
      random: this.#random.fork(name),
      meta: this.meta,
      find: (address) => this.sites.find((one) => one.folder.address === address)?.process?.served,
    };
    // A machine that is new to the engine takes over as others do.
    const before = this.#random.chance(0.5) ? (site.process?.name ?? "") : "";
    site.process =
      stored === undefined ? new EngineNode({ ...deps, before }, this.database) : new DiskNode(deps, stored);
    this.processes = this.sites.flatMap(({ process }) => process ?? []);
    site.process.start();
  }

  /** Values of a root wherever its rows are. */
  stored(owner: string): (readonly number[])[] {
    return this.#places.flatMap((place) => {
      const values = place.values(owner);
      return values === undefined ? [] : [values];
    });
  }
}

function clear(): Way {
  return { isCut: false, isSlow: false };
}
