// A MetaServer and two FileServers as processes that the rig kills, and the metadata store beside them.
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { openNodeStore } from "#metaserver/directory/open-directory.ts";
import type { Campaign } from "#prove/campaign.ts";
import { type GroveProcess, startGroveProcess } from "#prove/grove-process.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { until } from "#testing/until.ts";

/** A server in its place, and the process that runs there now. */
class Post {
  readonly data: string;
  readonly #words: readonly string[];
  #process: GroveProcess | undefined;

  constructor(data: string, words: readonly string[]) {
    this.data = data;
    this.#words = [...words, "-data", data];
  }

  async start(): Promise<void> {
    this.#process = await startGroveProcess(this.#words);
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    await this.#process?.end(signal);
    this.#process = undefined;
  }
}

/** The processes of the rig. */
export interface MovesCluster {
  /** Addresses of the nodes by their ids. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly posts: Readonly<Record<"n1" | "n2" | "meta", Post>>;
  /** The operator's access to the metadata store. */
  readonly store: Awaited<ReturnType<typeof openNodeStore>>;
  /** Stops the nodes in good order, and says what a deep check of their folders finds. */
  check(): Promise<string[]>;
}

/** Starts them in memory; they end with the campaign. */
export async function startMovesCluster(campaign: Campaign): Promise<MovesCluster> {
  const folder = await campaign.folder("memory");
  const [meta = "", first = "", second = ""] = (await freeGrpcPorts(3)).map((port) => `127.0.0.1:${port}`);
  const node = (id: string, address: string): Post =>
    new Post(
      join(folder, id),
      `fileserver -id ${id} -listen ${address} -advertise ${address} -metaserver ${meta} -reserve 1MiB
       -register_per_minute 1000000 -log_level warn`.split(/\s+/),
    );
  const posts = {
    meta: new Post(join(folder, "meta"), ["metaserver", "-listen", meta]),
    n1: node("n1", first),
    n2: node("n2", second),
  };
  campaign.atEnd(() => Promise.all(Object.values(posts).map((post) => post.end("SIGKILL"))));
  await posts.meta.start();
  const url = `sqlite:${join(posts.meta.data, "metadata.db")}`;
  const store = await openNodeStore(url, { clock: systemClock });
  campaign.atEnd(() => store.close());
  await Promise.all([posts.n1.start(), posts.n2.start()]);
  await until(async () => (await store.nodes()).length === 2, "the registration of both nodes");
  return {
    addresses: { n1: first, n2: second },
    posts,
    store,
    async check() {
      await Promise.all([posts.n1.end("SIGTERM"), posts.n2.end("SIGTERM")]);
      return [posts.n1, posts.n2].flatMap(({ data }) =>
        checkStorage(data, { repair: false, deep: true }).differences.map(
          (difference) => `${data}: ${difference}`,
        ),
      );
    },
  };
}
