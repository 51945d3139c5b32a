// A cluster of real processes, every two connected by a link that can be cut: PostgreSQL, two MetaServers,
// two FileServers, two users.
import { type ChildProcess, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import type { Campaign } from "#prove/campaign.ts";
import { type GroveProcess, startGroveProcess } from "#prove/grove-process.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import type { PostgresServer } from "#testing/postgres-server.ts";
import { Link } from "./link.ts";

const SCALED_TIME = fileURLToPath(new URL("scaled-time.ts", import.meta.url));
const CLIENT = fileURLToPath(new URL("client.fixture.ts", import.meta.url));
export const USERS: readonly string[] = ["user0@example.com", "user1@example.com"];

/** Processes that have just begun are too slow for times that pass many times faster: their first calls may fail. */
const BEGIN_TRIES = 20;
/** By the cluster's own time. */
const BEGIN_PAUSE_MS = 10_000;

/** A cluster whose times pass `scale` times faster. */
export class PartitionedCluster {
  readonly scale: number;
  readonly links: Link[] = [];
  readonly servers: GroveProcess[] = [];
  readonly #campaign: Campaign;
  readonly #zeroMs = Date.now();
  #client: ChildProcess | undefined;
  #database: pg.Client | undefined;
  readonly #waiting = new Map<number, (value: unknown) => void>();
  #asked = 0;

  private constructor(campaign: Campaign, scale: number) {
    this.#campaign = campaign;
    this.scale = scale;
  }

  /** Starts everything, with all links open, and both users at work. */
  static async start(
    campaign: Campaign,
    postgres: PostgresServer,
    scale: number,
  ): Promise<PartitionedCluster> {
    const cluster = new PartitionedCluster(campaign, scale);
    await cluster.#start(postgres);
    return cluster;
  }

  /** Milliseconds as the cluster counts them. */
  nowMs(): number {
    return (Date.now() - this.#zeroMs) * this.scale;
  }

  /** Waits, by the cluster's own time. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms / this.scale));
  }

  /** Returns links with this at either end: "n0", "m1", "db", "client". */
  linksOf(end: string): Link[] {
    return this.links.filter(({ name }) => name.split(" ").includes(end));
  }

  /** Asks the users' process. */
  ask<T>(question: object): Promise<T> {
    const id = ++this.#asked;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve as (value: unknown) => void);
      this.#client?.stdin?.write(`${JSON.stringify({ id, ...question })}\n`);
    });
  }

  /**
   * Returns the store's grants as "owner user", and the time since each node's last heartbeat, by the
   * cluster's time.
   */
  async store(): Promise<{ readonly grants: ReadonlySet<string>; readonly silentMs: readonly number[] }> {
    const database = this.#database;
    if (database === undefined) throw new Error("not started");
    const grants = await database.query<{ owner: string; user: string }>(
      'SELECT owner, "user" FROM grove.grants WHERE granted = 1',
    );
    const nodes = await database.query<{ last_seen_ms: string }>("SELECT last_seen_ms FROM grove.nodes");
    const scaledMs = this.#zeroMs + this.nowMs();
    return {
      grants: new Set(grants.rows.map(({ owner, user }) => `${owner} ${user}`)),
      silentMs: nodes.rows.map((row) => scaledMs - Number(row.last_seen_ms)),
    };
  }

  async #start(postgres: PostgresServer): Promise<void> {
    const campaign = this.#campaign;
    const folder = await campaign.folder();
    const name = await postgres.createDatabase();
    this.#database = new pg.Client({ connectionString: postgres.url(name) });
    this.#database.on("error", () => undefined);
    const database = this.#database;
    campaign.atEnd(() => database.end().catch(() => undefined));
    await database.connect();
    const ports = await freeGrpcPorts(6);
    const settings = {
      nodeFlags: ["--import", SCALED_TIME],
      env: { GROVE_PROOF_TIME_SCALE: String(this.scale), GROVE_PROOF_TIME_ZERO: String(this.#zeroMs) },
    };
    const metas = ports.slice(0, 2);
    for (const [at, port] of metas.entries()) {
      const way = await this.#link(`m${at} db`, postgres.port);
      const url = `postgres://grove:${encodeURIComponent(postgres.password)}@${way.address}/${name}`;
      const file = join(folder, `m${at}.url`);
      await writeFile(file, `${url}\n`, { mode: 0o600 });
      const words = ["-listen", `127.0.0.1:${port}`, "-meta_file", file, "-data", join(folder, `m${at}`)];
      this.#keep(await startGroveProcess(["metaserver", ...words, "-mock", "-metrics", "off"], settings));
    }
    for (const at of [0, 1]) {
      const [port = 0, front = 0] = [ports[2 + at], ports[4 + at]];
      const ways: string[] = [];
      for (const [to, meta] of metas.entries()) ways.push((await this.#link(`n${at} m${to}`, meta)).address);
      // Clients connect to the link, not to the node.
      const entrance = await this.#link(`client n${at}`, port, front);
      const words = ["-id", `n${at}`, "-listen", `127.0.0.1:${port}`, "-advertise", entrance.address];
      const data = ["-data", join(folder, `n${at}`), "-metaserver", ways.join(","), "-reserve", "1MiB"];
      const limits = ["-register_per_minute", "1000000"];
      this.#keep(await startGroveProcess(["fileserver", ...words, ...data, ...limits, "-mock"], settings));
    }
    const ways: string[] = [];
    for (const [to, meta] of metas.entries()) ways.push((await this.#link(`client m${to}`, meta)).address);
    const flags = [...settings.nodeFlags, CLIENT, join(folder, "users"), ways.join(","), USERS.join(",")];
    const client = spawn(process.execPath, flags, {
      env: { PATH: process.env["PATH"] ?? "", ...settings.env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    campaign.atEnd(() => client.kill("SIGKILL"));
    createInterface({ input: client.stdout }).on("line", (line) => {
      const { id, value } = JSON.parse(line) as { id: number; value: unknown };
      this.#waiting.get(id)?.(value);
      this.#waiting.delete(id);
    });
    this.#client = client;
    for (let tries = 0; !(await this.ask<boolean>({ ask: "begin" })); tries++) {
      if (tries === BEGIN_TRIES) throw new Error("the users cannot begin");
      await this.pause(BEGIN_PAUSE_MS);
    }
  }

  #keep(server: GroveProcess): void {
    this.servers.push(server);
    this.#campaign.atEnd(() => server.end("SIGKILL"));
  }

  async #link(name: string, target: number, port = 0): Promise<Link> {
    const link = await Link.open(name, target, port);
    this.#campaign.atEnd(() => link.close());
    this.links.push(link);
    return link;
  }
}
