// All that the rig attacks: a MetaServer, FileServers of one shared engine, its two places, and users at work.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { systemFraction } from "#base/random.ts";
import { parsePostgresUrl } from "#os/postgres-url.ts";
import type { Campaign } from "#prove/campaign.ts";
import { startGroveProcess } from "#prove/grove-process.ts";
import { ContentMaker } from "#prove/kill/content.ts";
import { compiledIn } from "#prove/launcher.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { checkEngine } from "#storage/engine/engine-check.ts";
import { type SharedAddress, sharedAddresses } from "#storage/shared/shared-connection.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { Person } from "./people.ts";
import { EnginePlaces } from "./places.ts";
import { Post } from "./post.ts";
import { Shift } from "./shift.ts";

const USERS = ["alice@example.com", "bob@example.com", "carol@example.com"];

/** The whole site. */
export class Site {
  readonly campaign: Campaign;
  readonly places: EnginePlaces;
  readonly posts: readonly Post[];
  readonly people: readonly Person[];
  /** For what the rig itself needs. */
  readonly folder: string;

  private constructor(parts: Pick<Site, "campaign" | "places" | "posts" | "people" | "folder">) {
    this.campaign = parts.campaign;
    this.places = parts.places;
    this.posts = parts.posts;
    this.people = parts.people;
    this.folder = parts.folder;
  }

  /** Starts everything; it ends with the campaign. */
  static async start(campaign: Campaign, random: SeededRandom, nodes: number): Promise<Site> {
    const folder = await campaign.folder("memory");
    const places = await EnginePlaces.start(campaign);
    const [meta = "", ...addresses] = (await freeGrpcPorts(1 + nodes)).map((port) => `127.0.0.1:${port}`);
    const words = ["metaserver", "-listen", meta, "-advertise", meta, "-data", join(folder, "meta")];
    const metaserver = await startGroveProcess(words);
    campaign.atEnd(() => metaserver.end("SIGKILL"));
    const env = { NODE_COMPILE_CACHE: compiledIn(join(folder, "compiled")) };
    const posts = await Promise.all(
      addresses.map(async (address, index) => {
        const own = join(folder, `n${index + 1}`);
        await mkdir(own);
        return Post.make({ id: `n${index + 1}`, address, metaserver: meta, folder: own, places, env });
      }),
    );
    campaign.atEnd(() => Promise.all(posts.map((post) => post.close())));
    await Promise.all(posts.map((post) => post.begin()));
    const contents = new ContentMaker(random.fork("contents"));
    const people = USERS.map((email) => {
      const others = USERS.filter((other) => other !== email);
      return new Person({ email, others, posts, random: random.fork(email), contents });
    });
    campaign.atEnd(() => people.forEach((person) => person.close()));
    await Promise.all(people.map((person) => person.find()));
    return new Site({ campaign, places, posts, people, folder });
  }

  /** Puts all lanes to work where their roots are served. */
  work(): Shift {
    return new Shift(this.people);
  }

  /** Compares everything with what was acknowledged; false when something is wrong, which is told. */
  async settle(when: string): Promise<boolean> {
    await Promise.all(this.people.map((person) => person.find()));
    const problems = (await Promise.all(this.people.map((person) => person.settle()))).flat();
    const rows = await checkEngine({
      database: this.addresses,
      bucket: undefined,
      clock: systemClock,
      fraction: systemFraction,
    });
    problems.push(...rows.differences.map((difference) => `rows: ${difference}`));
    for (const post of this.posts) problems.push(...post.ends.others.splice(0));
    for (const problem of problems) this.campaign.violation(`${when}: ${problem}`);
    return problems.length === 0;
  }

  /** Both servers of the database, over ways that nothing cuts. */
  get addresses(): SharedAddress[] {
    return sharedAddresses(parsePostgresUrl(this.url, {}), {});
  }

  get url(): string {
    return this.places.urlOver(this.places.ports);
  }
}
