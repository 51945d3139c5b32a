// A MetaServer, a console and three nodes, whose programs are replaced by those of other releases one by one.
import { join } from "node:path";
import { freePlace, type Place, type Program, stopProgram } from "#e2e/processes.ts";
import { freePort } from "#testing/free-ports.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import type { Release } from "./releases.ts";

/** The test that it belongs to. */
interface Owner {
  after(hook: () => Promise<unknown>): void;
}

/** One process of the cluster. */
export class Member {
  readonly name: string;
  readonly data: string;
  readonly #words: readonly string[];
  readonly #serves: () => Promise<boolean>;
  #program: Program | undefined;

  /** `data` is undefined for a process that keeps nothing. */
  constructor(
    name: string,
    data: string | undefined,
    words: readonly string[],
    serves: () => Promise<boolean>,
  ) {
    this.name = name;
    this.data = data ?? "";
    this.#words = data === undefined ? words : [...words, "-data", data];
    this.#serves = serves;
  }

  /** Starts the program of a release and waits until it serves. */
  async start(release: Release): Promise<void> {
    const program = release.start(this.#words, { env: { SVC_AUTH_MOCK: "1" } });
    this.#program = program;
    await until(async () => {
      if (program.child.exitCode !== null) throw new Error(`${this.name} ended: ${program.output()}`);
      return this.#serves();
    }, `${this.name} of ${release.version}`);
  }

  /** Ends it as a service manager does. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (this.#program !== undefined) await stopProgram(this.#program, signal);
    this.#program = undefined;
  }
}

/** The cluster. */
export interface RollingCluster {
  readonly folder: string;
  readonly metaserver: Place;
  readonly console: string;
  readonly meta: Member;
  readonly admin: Member;
  readonly nodes: readonly Member[];
  /** In the order in which they are upgraded. */
  readonly members: readonly Member[];
}

/** True once a URL is answered well. */
export async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );
}

/** Starts all of it with the programs of a release. */
export async function startRollingCluster(t: Owner, release: Release): Promise<RollingCluster> {
  const folder = scratchFolder("grove-rolling-");
  const metaserver = await freePlace();
  const meta = new Member(
    "metaserver",
    join(folder, "meta"),
    ["metaserver", "-listen", metaserver.address],
    () => answers(metaserver.metricsUrl + "/health"),
  );
  const consolePort = await freePort();
  const console = `http://127.0.0.1:${consolePort}`;
  const store = `sqlite:${join(folder, "meta", "metadata.db")}`;
  const admin = new Member(
    "console",
    join(folder, "admin"),
    ["admin", "-listen", `127.0.0.1:${consolePort}`, "-meta", store, "-allow_nodes", "127.0.0.0/8"],
    () => answers(`${console}/api/auth/status`),
  );
  const nodes: Member[] = [];
  for (const id of ["n1", "n2", "n3"]) {
    const at = await freePlace();
    const words = ["fileserver", "-id", id, "-listen", at.address, "-metaserver", metaserver.address];
    nodes.push(
      new Member(id, join(folder, id), [...words, "-reserve", "1MiB"], () =>
        answers(`${at.metricsUrl}/ready`),
      ),
    );
  }
  const members = [meta, admin, ...nodes];
  for (const member of members) {
    t.after(() => member.stop("SIGKILL"));
    await member.start(release);
  }
  return { folder, metaserver, console, meta, admin, nodes, members };
}
