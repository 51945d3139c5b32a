// A MetaServer and two nodes as processes that tests may kill, and what their stores say of a root that moves.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { operatorHere } from "./operator-here.ts";
import { Person } from "./people.ts";
import { freePlace, type Program, startGrove, stopProgram } from "./processes.ts";

/** A server that can be killed and started again in its place. */
export class Server {
  readonly data: string;
  readonly #words: readonly string[];
  readonly #says: RegExp;
  readonly #env: Readonly<Record<string, string>>;
  #program: Program | undefined;

  constructor(
    data: string,
    words: readonly string[],
    says: RegExp,
    env: Readonly<Record<string, string>> = {},
  ) {
    this.data = data;
    this.#env = env;
    this.#words = [...words, "-data", data];
    this.#says = says;
  }

  async start(): Promise<void> {
    this.#program = startGrove(this.#words, { env: { SVC_AUTH_MOCK: "1", ...this.#env } });
    await this.#program.says(this.#says);
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.#program !== undefined) await stopProgram(this.#program, signal);
  }

  async restart(): Promise<void> {
    await this.end("SIGKILL");
    await this.start();
  }
}

/** Where a move is: the metadata store's row, and the parts in the folders of both nodes. */
export interface Seen {
  readonly state: string;
  readonly source: string;
  readonly target: string;
  readonly atSource: string;
  readonly atTarget: string;
  /** True once rows have come to the target. */
  readonly hasRows: boolean;
}

/** The cluster. */
export interface MovingCluster {
  readonly folder: string;
  /** Address of the MetaServer. */
  readonly address: string;
  readonly meta: Server;
  readonly nodes: Readonly<Record<string, Server>>;
  signIn(name: string): Promise<Person>;
  /** Runs `grove root move` on the metadata store. */
  move(...words: string[]): Promise<string>;
  /** The node where the store has a root. */
  homeOf(person: Pick<Person, "email">): string;
  /** The move of a user's root; undefined when there is none. */
  seen(person: Person): Seen | undefined;
  /** Number of chunk files at the node of a user's root. */
  chunkFiles(person: Pick<Person, "email">): Promise<number>;
  /** Stops all of them in good order. */
  stop(): Promise<void>;
}

/** Settings of a cluster that differ from the usual ones. */
export interface ClusterSettings {
  /** Environment of all servers. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further words of the MetaServer. */
  readonly metaWords?: readonly string[];
  /** Further words of the nodes. */
  readonly nodeWords?: readonly string[];
}

/** Starts it. */
export async function startMovingCluster(
  t: TestContext,
  { env = {}, metaWords = [], nodeWords = [] }: ClusterSettings = {},
): Promise<MovingCluster> {
  const folder = scratchFolder("grove-e2e-");
  const place = await freePlace();
  const meta = new Server(
    join(folder, "meta"),
    ["metaserver", "-listen", place.address, ...metaWords],
    /"event":"serving"/,
    env,
  );
  const node = async (id: string): Promise<Server> => {
    const at = await freePlace();
    const words = ["fileserver", "-id", id, "-listen", at.address, "-advertise", at.address];
    return new Server(
      join(folder, id),
      [...words, "-metaserver", place.address, "-reserve", "1MiB", ...nodeWords],
      /: serves .* on /,
      env,
    );
  };
  const nodes = { n1: await node("n1"), n2: await node("n2") };
  const all = [meta, nodes.n1, nodes.n2];
  for (const server of all) {
    t.after(() => server.end("SIGKILL"));
    await server.start();
  }
  const store = join(meta.data, "metadata.db");
  const rows = (file: string, sql: string, ...values: string[]): Record<string, unknown>[] => {
    if (!existsSync(file)) return [];
    const database = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
    try {
      return database.prepare(sql).all(...values);
    } finally {
      database.close();
    }
  };
  const partAt = (id: string, sql: string): string => {
    // A lost move has no target.
    const [row] = id === "" ? [] : rows(join(nodes[id as "n1"].data, "inodes.db"), sql);
    return String(row?.["state"] ?? "");
  };
  const homeOf = ({ email }: Pick<Person, "email">): string => {
    const [row] = rows(store, "SELECT fs_id FROM roots WHERE owner = ?", email);
    return String(row?.["fs_id"]);
  };
  return {
    folder,
    address: place.address,
    meta,
    nodes,
    async signIn(name) {
      const person = new Person(folder, name);
      await person.ok("login", "--metaserver", place.address, "--mock", person.email);
      await until(async () => (await person.grove("ls")).code === 0, "ls");
      return person;
    },
    async move(...words) {
      const { code, stdout, stderr } = await operatorHere([
        "root",
        "move",
        ...words,
        "-meta",
        `sqlite:${store}`,
      ]);
      assert.equal(code, 0, stderr);
      return stdout;
    },
    homeOf,
    async chunkFiles(person) {
      const chunks = join(nodes[homeOf(person) as "n1"].data, "chunks");
      const entries = await readdir(chunks, { recursive: true, withFileTypes: true });
      return entries.filter((entry) => entry.isFile()).length;
    },
    seen({ email }) {
      const [row] = rows(store, "SELECT value FROM settings WHERE key = ?", `root_move:${email}`);
      if (row === undefined) return undefined;
      const { state, source, target, moveId } = JSON.parse(String(row["value"])) as Record<string, string>;
      if (state === undefined || source === undefined || target === undefined) return undefined;
      const part = `SELECT state FROM root_move WHERE move_id = '${moveId}'`;
      const hasRows = partAt(target, "SELECT 1 AS state FROM move_bucket LIMIT 1") !== "";
      return {
        state,
        source,
        target,
        atSource: partAt(source, part),
        atTarget: partAt(target, part),
        hasRows,
      };
    },
    async stop() {
      for (const server of all.toReversed()) await server.end("SIGTERM");
    },
  };
}
