// A FileServer of the shared engine in its place: started again when it ends, as its service would, with a
// way to the database that can be cut.
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type GroveProcess, startGroveProcess } from "#prove/grove-process.ts";
import { type Cut, Link } from "#prove/partitions/link.ts";
import type { EnginePlaces } from "./places.ts";

const RESTART_PAUSE_MS = 100;
/** Every so many starts a node has lost its cache, as after an exchange of its disk; so caches stay small, too. */
const STARTS_WITH_CACHE = 8;
const LOG_CHARACTERS = 1_200;
/** What a process says that has ended itself for want of a lease. */
const LEASE_ENDED = /lease on the shared engine has ended/;
const LIMITS = ["-register_per_minute", "1000000", "-sessions", "10000", "-streams_per_user", "64"];

/** Where a post is, and how it is started. */
export interface PostSettings {
  readonly id: string;
  readonly address: string;
  readonly metaserver: string;
  /** A folder of its own, there. */
  readonly folder: string;
  readonly places: EnginePlaces;
  readonly env: Readonly<Record<string, string>>;
}

/** One node. */
export class Post {
  readonly id: string;
  readonly address: string;
  /** Seconds for which others wait for the next process. */
  leaseSeconds = 2;
  /** Ends of processes by themselves: for want of a lease, and for any other reason, in words. */
  readonly ends: { leases: number; readonly others: string[] } = { leases: 0, others: [] };
  readonly #settings: PostSettings;
  readonly #links: readonly Link[];
  #process: GroveProcess | undefined;
  #running: Promise<void> | undefined;
  #starts = 0;
  #isWanted = false;
  #isKilled = false;
  #serving = Promise.withResolvers<void>();

  private constructor(settings: PostSettings, links: readonly Link[]) {
    this.id = settings.id;
    this.address = settings.address;
    this.#settings = settings;
    this.#links = links;
  }

  /** Makes its links and files; nothing runs. */
  static async make(settings: PostSettings): Promise<Post> {
    const { id, folder, places } = settings;
    const links = await Promise.all(places.ports.map((port) => Link.open(`${id} to ${port}`, port)));
    const url = `${places.urlOver(links.map(({ port }) => port))}\n`;
    await writeFile(join(folder, "engine-url"), url, { mode: 0o600 });
    return new Post(settings, links);
  }

  /** Starts it, and again whenever it ends; resolves when it serves. */
  async begin(): Promise<void> {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#isKilled = false;
    await this.#running;
    this.#running = this.#run();
    await this.#serving.promise;
  }

  /** Resolves once it serves, where it has begun. */
  serves(): Promise<void> {
    return this.#serving.promise;
  }

  /** Lets the process end by itself, and no other follow; resolves when it has. */
  async ended(): Promise<void> {
    this.#isWanted = false;
    await this.#running;
  }

  /** Ends it by force, and starts none. */
  async kill(): Promise<void> {
    this.#isWanted = false;
    this.#isKilled = true;
    await this.#process?.end("SIGKILL");
    await this.#running;
  }

  /** Ends it in good order. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    this.#isKilled = true;
    await this.#process?.end("SIGTERM");
    await this.#running;
  }

  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.#process?.signal(name);
  }

  /** The end of what the process has said. */
  log(): string {
    return this.#process?.log().slice(-LOG_CHARACTERS) ?? "";
  }

  /** Its way to the database. */
  cut(cut: Cut): void {
    for (const link of this.#links) link.set(cut);
  }

  async close(): Promise<void> {
    await this.kill();
    for (const link of this.#links) link.close();
  }

  async #run(): Promise<void> {
    while (this.#isWanted) {
      const cache = join(this.#settings.folder, "data", "engine", "chunks-read");
      if (++this.#starts % STARTS_WITH_CACHE === 0) await rm(cache, { recursive: true, force: true });
      const started = await this.#start();
      if (started === undefined) {
        await sleep(RESTART_PAUSE_MS);
        continue;
      }
      this.#process = started;
      if (!this.#isWanted) {
        // The signal may have come before there was a process.
        if (this.#isKilled) await started.end("SIGKILL");
        break;
      }
      this.#serving.resolve();
      await started.ended;
      this.#serving = Promise.withResolvers();
      if (this.#isKilled) break;
      if (LEASE_ENDED.test(started.log())) this.ends.leases++;
      else this.ends.others.push(`${this.id} ended by itself: ${started.log().slice(-LOG_CHARACTERS)}`);
    }
    await this.#process?.ended;
    this.#process = undefined;
  }

  /** Undefined where it does not start, such as without a database. */
  #start(): Promise<GroveProcess | undefined> {
    const { id, address, metaserver, folder, places, env } = this.#settings;
    const place = ["-id", id, "-listen", address, "-advertise", address, "-data", join(folder, "data")];
    const engine = ["-engine_file", join(folder, "engine-url"), "-store", places.storeUrl];
    const lease = ["-engine_lease", `${this.leaseSeconds}`];
    const more = ["-metaserver", metaserver, "-reserve", "1MiB", "-log_level", "warn", ...LIMITS];
    return startGroveProcess(["fileserver", ...place, ...engine, ...lease, ...more], { env }).catch(
      () => undefined,
    );
  }
}
