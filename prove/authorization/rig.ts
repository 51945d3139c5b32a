// Twenty users with shares, moves, deletions and trash against an oracle of sixty lines, over gRPC (F9).
//
// Between two changes hundreds of requests are in flight: may this user read, write, delete, share, move, or
// see the trash, the quota or another's sessions there. Roots are written in all their forms, and headers
// claim other identities. Tokens are missing, invented, cut, ended, evicted, an ID token, or good ones from
// another address. Each user has app passwords as well, for a door: for reading alone, below a folder that moves and goes,
// and without bounds. Most places existed once: they have moved, gone, or come back with other content. Some lie
// beside a share, under names with the same prefix.
//
// Requests in flight during a change may be answered as before or after it; those that begin after it only as
// after. The content read must be that of the oracle's file.
//
// It cannot see: streams that run when a share ends, moves by sharees within a share (the model rig),
// certificates, real identity providers, the console.
import { channelFrom } from "#fileserver/process/other-address.fixture.ts";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import { overEngine } from "#prove/rig-engine.ts";
import { answerOf, type ServedNode, type SignedIn, serveNode } from "#prove/served-node.ts";
import { type Cast, type Check, drawCheck, neighbourCheck } from "./checks.ts";
import { Oracle } from "./oracle.ts";
import { makeVisitors, renewVisitors } from "./visitors.ts";

const USERS = 20;
const QUESTIONS_PER_CHANGE = 240;
/** Requests at the names beside a share. */
const NEIGHBOURS_PER_CHANGE = 4;
const QUESTIONS_DURING_CHANGE = 40;
const SHAREES_AT_FIRST = 6;
const PER_USER_SESSIONS = 5;
const OTHER_ADDRESS = "127.0.0.2";

class Court {
  readonly #campaign: Campaign;
  readonly #cast: Cast & { places: string[] };
  readonly #other: Awaited<ReturnType<typeof channelFrom>>;
  #made = 0;

  constructor(campaign: Campaign, cast: Court["cast"], other: Awaited<ReturnType<typeof channelFrom>>) {
    this.#campaign = campaign;
    this.#cast = cast;
    this.#other = other;
  }

  get cast(): Cast & { places: string[] } {
    return this.#cast;
  }

  /** Makes one change with requests around it, then many requests on the result. */
  async sit(): Promise<void> {
    const during = Array.from({ length: QUESTIONS_DURING_CHANGE }, () => drawCheck(this.#cast));
    const before = during.map((check) => check.wanted());
    const asked = during.map((check) => check.ask());
    await this.#change();
    for (const [at, check] of during.entries())
      this.#judge(check, await asked[at], [before[at] ?? "", check.wanted()]);
    const after = Array.from({ length: QUESTIONS_PER_CHANGE }, (_, at) =>
      at < NEIGHBOURS_PER_CHANGE ? neighbourCheck(this.#cast) : drawCheck(this.#cast),
    );
    await Promise.all(after.map(async (check) => this.#judge(check, await check.ask(), [check.wanted()])));
    await this.#fromElsewhere();
  }

  #judge({ what }: Check, answer: string | undefined, wanted: readonly string[]): void {
    this.#campaign.step();
    this.#campaign.count(`answered ${answer?.startsWith("ok") ? "ok" : answer}`);
    if (answer !== undefined && wanted.includes(answer)) return;
    this.#campaign.violation(`${what}: ${answer} instead of ${wanted.join(" or ")}`);
  }

  /** Uses a good token from another address than its own. */
  async #fromElsewhere(): Promise<void> {
    const { token, email } = this.#cast.random.pick(this.#cast.users);
    const answer = await answerOf(this.#other.getAttr("/", token));
    const what = `a call by ${email} from another address`;
    this.#judge({ what, ask: async () => "", wanted: () => "" }, answer, ["IP_MISMATCH"]);
  }

  /** Makes one change as an owner; the oracle follows when it is acknowledged. */
  async #change(): Promise<void> {
    const { random, oracle, users, places } = this.#cast;
    const owner = random.pick(users);
    const { email, calls } = owner;
    const path = random.pick(oracle.paths(email).filter((each) => each !== "/"));
    const user = random.pick(users.filter((each) => each !== owner)).email;
    const draw = random.below(20);
    this.#campaign.count("changes");
    if (draw < 8) {
      await calls.share({ path, user }, owner);
      return oracle.share(email, path, user);
    }
    if (draw < 13) {
      // Half of the time below a share that goes on.
      const below = random.chance(0.5) ? oracle.inherited(email) : [];
      const [at, whom] = below.length > 0 ? random.pick(below) : [path, user];
      const said = await answerOf(calls.unshare({ path: at, user: whom }, owner));
      if (said !== "ok") this.#campaign.violation(`unshare ${email}:${at} ${whom}: ${said} instead of ok`);
      return oracle.unshare(email, at, whom);
    }
    if (draw < 17 && oracle.paths(email).length > 3) {
      const target = `/m${this.#made++ % 40}`;
      if (oracle.entry(email, target) !== undefined) return undefined;
      await calls.rename({ path, targetPath: target }, owner);
      oracle.move(email, path, target);
      if (!places.includes(target)) places.push(target);
      return undefined;
    }
    if (draw % 2 === 0) await calls.trashFile({ path }, owner);
    else await calls.deleteFile({ path, recursive: true }, owner);
    oracle.move(email, path, undefined);
    return plant(owner, oracle, `t${this.#made++ % 12}`, places);
  }
}

/** Makes a folder with a file and a folder with a file, where they are missing. */
async function plant(owner: SignedIn, oracle: Oracle, name: string, places: string[]): Promise<void> {
  const { calls, email } = owner;
  for (const path of [`/${name}`, `/${name}/f`, `/${name}/s`, `/${name}/s/f`]) {
    if (!places.includes(path)) places.push(path);
    if (oracle.entry(email, path) !== undefined) continue;
    if (path.endsWith("f")) {
      const content = `${email} ${path} ${oracle.paths(email).length}`;
      await calls.createFile({ path, data: Buffer.from(content) }, owner);
      oracle.add(email, path, content);
    } else {
      await calls.createDirectory({ path }, owner);
      oracle.add(email, path);
    }
  }
}

/** Returns invalid tokens with the reason of the refusal. */
async function badTokens(node: ServedNode): Promise<[string | undefined, string][]> {
  const good = await node.signIn("user0@example.com");
  const ended = await node.signIn("gone@example.com");
  await ended.calls.endSession({}, ended);
  const evicted = await node.signIn("many@example.com");
  for (let count = 0; count < PER_USER_SESSIONS; count++) await node.signIn("many@example.com");
  return [
    [undefined, "SESSION_MISSING"],
    ["", "SESSION_MISSING"],
    [ended.token, "SESSION_UNKNOWN"],
    [evicted.token, "SESSION_EVICTED"],
    [good.token.slice(0, -1), "SESSION_UNKNOWN"],
    [`${good.token}A`, "SESSION_UNKNOWN"],
    [good.token.toUpperCase(), "SESSION_UNKNOWN"],
    ["mock-jwt.user0@example.com", "SESSION_UNKNOWN"],
    [`sst_${"A".repeat(43)}`, "SESSION_UNKNOWN"],
    ["user0@example.com", "SESSION_UNKNOWN"],
  ];
}

async function run(campaign: Campaign): Promise<void> {
  const node = await serveNode(campaign, "memory", true);
  const oracle = new Oracle();
  const places = ["/"];
  const users = await Promise.all(
    Array.from({ length: USERS }, (_, number) => node.signIn(`user${number}@example.com`)),
  );
  for (const user of users) {
    oracle.add(user.email, "/");
    for (const name of ["t0", "t1"]) await plant(user, oracle, name, places);
    // The first shares, so that there is access from the start.
    for (const other of users.slice(0, SHAREES_AT_FIRST).filter((each) => each !== user)) {
      await user.calls.share({ path: "/t0", user: other.email }, user);
      oracle.share(user.email, "/t0", other.email);
    }
  }
  const visitors = await makeVisitors(campaign, node, { users, oracle });
  const other = await channelFrom(OTHER_ADDRESS, node.address);
  campaign.atEnd(() => other.close());
  const random = campaign.random.fork("court");
  const court = new Court(
    campaign,
    { users, visitors, oracle, random, places, badTokens: await badTokens(node) },
    other,
  );
  while (campaign.shouldGoOn()) {
    await renewVisitors(visitors);
    await court.sit();
  }
  if (!node.process.isRunning()) campaign.violation(`the server ended: ${node.process.log()}`);
}

/** See the head of this file. */
export const authorization: Rig = {
  name: "authorization",
  figure: "F9",
  proves:
    "Nobody reaches, changes or learns of what is not theirs or shared with them, whatever a request claims",
  unit: "answers",
  goal: 1_000_000,
  shortGoal: 5_000,
  plantedGoal: 8_000,
  lanes: 2,
  run,
};

/** F9 on the shared engine. */
export const authorizationOverEngine: Rig = overEngine(authorization, {
  goal: 300_000,
  shortGoal: 1_000,
  plantedGoal: 4_000,
});
