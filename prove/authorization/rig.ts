// Twenty users and two groups with shares, moves, deletions, trash and links against an oracle, over gRPC (F9).
//
// Between two changes hundreds of requests are in flight: may this user read, write, delete, share, move, or
// see the trash, the quota or another's sessions there. Roots are written in all their forms, and headers
// claim other identities. Tokens are missing, invented, cut, ended, evicted, an ID token, or good ones from
// another address. Each user has app passwords as well, for a door: for reading alone, below a folder that moves and goes,
// and without bounds. Most places existed once: they have moved, gone, or come back with other content. Some lie
// beside a share, under names with the same prefix.
//
// Groups have members by hand and by a claim of the ID token, who read, write or manage their roots. Roles are given
// by the administrator and by managers, claims change, an old token speaks late, a group is deleted and made again.
// Until the FileServer has heard, for a minute at most, requests may be answered as before; then only as after.
// Members come by their app passwords as well, and guests by links into the roots of groups and users.
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
import type { Cast, Check, Guest } from "./cast.ts";
import { drawCheck, neighbourCheck } from "./checks.ts";
import { GROUPS_CLAIM, Groups } from "./groups.ts";
import { comeByLink } from "./guests.ts";
import { Oracle } from "./oracle.ts";
import { makeVisitors, renewVisitors } from "./visitors.ts";

const USERS = 20;
const QUESTIONS_PER_CHANGE = 240;
/** Requests at the names beside a share. */
const NEIGHBOURS_PER_CHANGE = 4;
const QUESTIONS_DURING_CHANGE = 40;
/** Requests at once while the FileServer has yet to hear of a change of groups. */
const QUESTIONS_MEANWHILE = 60;
/** Other changes between two changes of groups, in the short form and in a long run. */
const [CHANGES_BETWEEN, CHANGES_BETWEEN_LONG] = [4, 20];
/** Runs of more answers are long ones. */
const LONG_GOAL = 20_000;
const SHAREES_AT_FIRST = 6;
const PER_USER_SESSIONS = 5;
const OTHER_ADDRESS = "127.0.0.2";

/** The cast of a court, which changes. */
type CourtCast = Cast & { readonly places: string[]; readonly guests: Guest[] };

class Court {
  readonly #campaign: Campaign;
  readonly #cast: CourtCast;
  readonly #other: Awaited<ReturnType<typeof channelFrom>>;
  #made = 0;
  #sittings = 0;

  constructor(campaign: Campaign, cast: CourtCast, other: Awaited<ReturnType<typeof channelFrom>>) {
    this.#campaign = campaign;
    this.#cast = cast;
    this.#other = other;
  }

  /** Makes one change with requests around it, then many requests on the result. */
  async sit(): Promise<void> {
    const between = this.#campaign.goal > LONG_GOAL ? CHANGES_BETWEEN_LONG : CHANGES_BETWEEN;
    if (this.#sittings++ % (between + 1) === 1) await this.#changeGroups();
    else await this.#changeAmid();
    const after = Array.from({ length: QUESTIONS_PER_CHANGE }, (_, at) =>
      at < NEIGHBOURS_PER_CHANGE ? neighbourCheck(this.#cast) : drawCheck(this.#cast),
    );
    await Promise.all(after.map(async (check) => this.#judge(check, await check.ask(), [check.wanted()])));
    await this.#fromElsewhere();
  }

  async #changeGroups(): Promise<void> {
    const { oracle, groups, guests } = this.#cast;
    await groups.change(async (before, after) => {
      const checks = Array.from({ length: QUESTIONS_MEANWHILE }, () => drawCheck(this.#cast));
      const answers = await Promise.all(checks.map((check) => check.ask()));
      const wanted = [before, after].map((each) => {
        oracle.groups = each;
        return checks.map((check) => check.wanted());
      });
      for (const [at, check] of checks.entries())
        this.#judge(
          check,
          answers[at],
          wanted.map((each) => each[at] ?? ""),
        );
    });
    // Sessions by links end with the group, also where it is made again.
    for (const guest of guests) if (oracle.groups.isClosed(guest.owner)) guest.isOver = true;
  }

  async #changeAmid(): Promise<void> {
    const during = Array.from({ length: QUESTIONS_DURING_CHANGE }, () => drawCheck(this.#cast));
    const before = during.map((check) => check.wanted());
    const asked = during.map((check) => check.ask());
    await this.#change();
    for (const [at, check] of during.entries())
      this.#judge(check, await asked[at], [before[at] ?? "", check.wanted()]);
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

  /** Makes one change as an owner or as a member; the oracle follows when it is acknowledged. */
  async #change(): Promise<void> {
    const { random, oracle, users, places } = this.#cast;
    const owner = random.chance(0.3) ? random.pick(oracle.groups.owners()) : random.pick(users).email;
    const holders = (right: "delete" | "share"): SignedIn[] =>
      users.filter(({ email }) => oracle.verdict(email, owner, "/", right) === "ok");
    const draw = random.below(23);
    const isSharing = draw < 13 || draw >= 20;
    const able = holders(isSharing ? "share" : "delete");
    if (able.length === 0) return;
    const by = random.pick(able);
    const path = random.pick(oracle.paths(owner).filter((each) => each !== "/"));
    this.#campaign.count("changes");
    if (isSharing) {
      if (draw >= 20) return await this.#changeLinks(by, owner, path);
      return await this.#changeShares(by, owner, path, draw < 8);
    }
    const { calls } = by;
    if (draw < 17 && oracle.paths(owner).length > 3) {
      const target = `/m${this.#made++ % 40}`;
      if (oracle.entry(owner, target) !== undefined) return undefined;
      await calls.rename({ root: owner, path, targetPath: target }, by);
      oracle.move(owner, path, target);
      if (!places.includes(target)) places.push(target);
      return undefined;
    }
    if (draw % 2 === 0) await calls.trashFile({ root: owner, path }, by);
    else await calls.deleteFile({ root: owner, path, recursive: true }, by);
    oracle.move(owner, path, undefined);
    return plant(by, owner, oracle, `t${this.#made++ % 12}`, places);
  }

  async #changeShares(by: SignedIn, owner: string, path: string, isBegin: boolean): Promise<void> {
    const { random, oracle, users } = this.#cast;
    const user = random.pick(users.filter(({ email }) => email !== owner && email !== by.email)).email;
    if (isBegin) {
      await by.calls.share({ root: owner, path, user }, by);
      return oracle.share(owner, path, user);
    }
    // Half of the time below a share that goes on.
    const below = random.chance(0.5) ? oracle.inherited(owner) : [];
    const [at, whom] = below.length > 0 ? random.pick(below) : [path, user];
    const said = await answerOf(by.calls.unshare({ root: owner, path: at, user: whom }, by));
    if (said !== "ok") this.#campaign.violation(`unshare ${owner}:${at} ${whom}: ${said} instead of ok`);
    return oracle.unshare(owner, at, whom);
  }

  /** Makes a link and comes by it, or ends one. */
  async #changeLinks(by: SignedIn, owner: string, path: string): Promise<void> {
    const { random, oracle, guests } = this.#cast;
    const guest = guests.find((each) => each.owner === owner && !each.isOver);
    const entry = oracle.entry(owner, path);
    if (guest !== undefined && oracle.placeOf(owner, guest.entry) !== undefined && random.chance(0.4)) {
      await by.calls.revokeLink({ root: owner, id: guest.linkId }, by);
      guest.isOver = true;
    } else if (entry !== undefined) {
      await comeByLink(guests, { by, owner, path, entry }, entry.isFolder && random.chance(0.3));
    }
  }
}

/** Makes a folder with a file and a folder with a file, where they are missing. */
async function plant(
  by: SignedIn,
  root: string,
  oracle: Oracle,
  ...[name, places]: [name: string, places: string[]]
): Promise<void> {
  const { calls } = by;
  for (const path of [`/${name}`, `/${name}/f`, `/${name}/s`, `/${name}/s/f`]) {
    if (!places.includes(path)) places.push(path);
    if (oracle.entry(root, path) !== undefined) continue;
    if (path.endsWith("f")) {
      const content = `${root} ${path} ${oracle.paths(root).length}`;
      await calls.createFile({ root, path, data: Buffer.from(content) }, by);
      oracle.add(root, path, content);
    } else {
      await calls.createDirectory({ root, path }, by);
      oracle.add(root, path);
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
  const node = await serveNode(campaign, "memory", ["-groups_claim", GROUPS_CLAIM]);
  const oracle = new Oracle();
  const places = ["/"];
  const users = await Promise.all(
    Array.from({ length: USERS }, (_, number) => node.signIn(`user${number}@example.com`)),
  );
  for (const user of users) {
    oracle.add(user.email, "/");
    for (const name of ["t0", "t1"]) await plant(user, user.email, oracle, name, places);
    // The first shares, so that there is access from the start.
    for (const other of users.slice(0, SHAREES_AT_FIRST).filter((each) => each !== user)) {
      await user.calls.share({ path: "/t0", user: other.email }, user);
      oracle.share(user.email, "/t0", other.email);
    }
  }
  const visitors = await makeVisitors(campaign, node, { users, oracle });
  const groups = new Groups({ campaign, node, users, oracle });
  await groups.make();
  for (const owner of oracle.groups.owners()) {
    oracle.add(owner, "/");
    const manager = users.find(({ email }) => oracle.verdict(email, owner, "/", "share") === "ok");
    if (manager === undefined) throw new Error(`no user manages ${owner}`);
    for (const name of ["t0", "t1"]) await plant(manager, owner, oracle, name, places);
  }
  const other = await channelFrom(OTHER_ADDRESS, node.address);
  campaign.atEnd(() => other.close());
  const random = campaign.random.fork("court");
  const court = new Court(
    campaign,
    { users, visitors, guests: [], oracle, groups, random, places, badTokens: await badTokens(node) },
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
