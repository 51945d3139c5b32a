// The groups of a run of the authorization rig: who makes and changes them, and when a FileServer has followed.
import type { Campaign } from "#prove/campaign.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { answerOf, type ServedNode, type SignedIn } from "#prove/served-node.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { ROLES, type Role } from "./group-oracle.ts";
import type { Oracle } from "./oracle.ts";

/** Claim of the ID token that has a person's groups. */
export const GROUPS_CLAIM = "groups";
/** Values of the claim; the last one names no group. */
const VALUES = ["eng", "law", "art", "none"];
const NAMES = ["atlas", "birch"];
/** A change has taken effect at the FileServer by then. */
const EFFECT_MS = 60_000;
/** The second of so many changes is an old token, the fourth the end of a group. */
const CHANGES_PER_TURN = 6;
/** Ages of older tokens. */
const YESTERDAY_SECONDS = 86_400;
const MOMENT_SECONDS = 3;

/** Dependencies of the groups. */
export interface GroupsDeps {
  readonly campaign: Campaign;
  readonly node: ServedNode;
  readonly users: readonly SignedIn[];
  readonly oracle: Oracle;
}

/** The name of a group by the owner of its root. */
export function nameOf(owner: string): string {
  return owner.slice(0, owner.indexOf("@"));
}

/** The groups of a run. */
export class Groups {
  readonly #deps: GroupsDeps;
  readonly #meta: Client<typeof MetaServer>;
  readonly #random: SeededRandom;
  #slowestMs = 0;
  #changes = 0;

  constructor(deps: GroupsDeps) {
    this.#deps = deps;
    const channel = new GrpcChannel({ addresses: [deps.node.metaserver ?? ""] });
    deps.campaign.atEnd(() => channel.close());
    this.#meta = createClient(MetaServer, channel);
    this.#random = deps.campaign.random.fork("groups");
  }

  get meta(): Client<typeof MetaServer> {
    return this.#meta;
  }

  /** Makes the groups, each with members of every role by hand and by claim; returns when all roles hold. */
  async make(): Promise<void> {
    const { users, oracle } = this.#deps;
    for (const [at, name] of NAMES.entries()) {
      const owner = `${name}@group`;
      await this.#meta.createGroup({ name }, this.#admin());
      oracle.groups.create(owner);
      for (const [index, role] of ROLES.entries()) {
        await this.#give(owner, users[3 * at + index]?.email ?? "", role);
        await this.#claim(owner, VALUES[index] ?? "", ROLES[(index + at) % ROLES.length]);
      }
      await this.#give(owner, users[7]?.email ?? "", "manage");
    }
    for (const [at, { email }] of users.slice(8, 14).entries())
      await this.#say(email, [VALUES[at % 4] ?? ""]);
    await this.#settled();
  }

  /**
   * Makes one change; the oracle follows it. Until the FileServer has, `meanwhile` is called again and again,
   * which may be answered as by either.
   */
  async change(
    meanwhile: (before: Oracle["groups"], after: Oracle["groups"]) => Promise<void>,
  ): Promise<void> {
    const { oracle, campaign } = this.#deps;
    const before = oracle.groups;
    oracle.groups = before.copy();
    await this.#change();
    campaign.count("changes of groups");
    oracle.formerGroups = before;
    await this.#settled(() => meanwhile(before, oracle.groups));
    oracle.formerGroups = undefined;
  }

  /**
   * A new ID token of a person, with the values that the last one had. The MetaServer hears it with the call that
   * it comes with; one that only administrators may make lets no other person in, and is not heard.
   */
  tokenOf(user: string, { isHeard = true } = {}): { metadata: { authorization: string } } {
    const values = this.#deps.oracle.groups.valuesOf(user);
    const atSeconds = Math.floor(Date.now() / 1_000);
    if (isHeard) this.#deps.oracle.groups.say(user, atSeconds, values);
    return token(user, values, atSeconds);
  }

  async #change(): Promise<void> {
    const { users, oracle } = this.#deps;
    const random = this.#random;
    const { groups } = oracle;
    const owner = random.pick(groups.owners());
    const user = random.pick(users).email;
    if (groups.isClosed(owner)) {
      await this.#meta.createGroup({ name: nameOf(owner), withFiles: true }, this.#admin());
      groups.create(owner);
      return await this.#give(owner, user, "manage");
    }
    const turn = this.#changes++ % CHANGES_PER_TURN;
    // A token from before the last one brings nothing back, whatever it names.
    if (turn === 1)
      return await this.#say(this.#member().email, VALUES, random.pick([YESTERDAY_SECONDS, MOMENT_SECONDS]));
    if (turn === 3) {
      await this.#meta.deleteGroup({ name: nameOf(owner) }, this.#admin());
      return groups.delete(owner);
    }
    const draw = random.below(12);
    if (draw < 4) return await this.#give(owner, user, random.pick(ROLES));
    if (draw < 6) return await this.#end(owner);
    if (draw < 9) {
      const isOver = random.chance(0.3) && groups.claimsOf(owner).length > 0;
      if (isOver) return await this.#claim(owner, random.pick(groups.claimsOf(owner)), undefined);
      return await this.#claim(owner, random.pick(VALUES.slice(0, -1)), random.pick(ROLES));
    }
    const values = VALUES.filter(() => random.chance(0.3));
    return await this.#say(user, values);
  }

  /** A person whose token has named a group before. */
  #member(): SignedIn {
    const { users, oracle } = this.#deps;
    return this.#random.pick(users.filter(({ email }) => oracle.groups.hasSaid(email)));
  }

  /** Gives a role as the administrator, or as a person who manages the group. */
  async #give(owner: string, user: string, role: Role): Promise<void> {
    const { oracle, users } = this.#deps;
    const managers = users.filter(({ email }) => email !== user && oracle.groups.rank(email, owner) === 3);
    const by = this.#random.chance(0.5) && managers.length > 0 ? this.#random.pick(managers) : undefined;
    await this.#meta.changeGroup(
      { name: nameOf(owner), change: { case: "addMember", value: { username: user, role } } },
      by === undefined ? this.#admin() : this.tokenOf(by.email),
    );
    oracle.groups.give(owner, user, role);
  }

  async #end(owner: string): Promise<void> {
    const { groups } = this.#deps.oracle;
    const members = groups.byHand(owner);
    if (members.length === 0) return;
    const user = this.#random.pick(members);
    const change = { case: "removeMember", value: user } as const;
    await this.#meta.changeGroup({ name: nameOf(owner), change }, this.#admin());
    groups.give(owner, user, undefined);
  }

  async #claim(owner: string, value: string, role: Role | undefined): Promise<void> {
    const change =
      role === undefined
        ? ({ case: "removeClaim", value } as const)
        : ({ case: "addClaim", value: { value, role } } as const);
    await this.#meta.changeGroup({ name: nameOf(owner), change }, this.#admin());
    this.#deps.oracle.groups.claim(owner, value, role);
  }

  async #say(user: string, values: readonly string[], ageSeconds = 0): Promise<void> {
    const atSeconds = Math.floor(Date.now() / 1_000) - ageSeconds;
    await this.#meta.getRoots({}, token(user, values, atSeconds));
    this.#deps.oracle.groups.say(user, atSeconds, values);
  }

  #admin(): { metadata: { authorization: string } } {
    return { metadata: { authorization: `Bearer mock-jwt.${this.#deps.node.admin}` } };
  }

  /** Returns when each user has exactly their role in each group, and reports one who has not in a minute. */
  async #settled(meanwhile?: () => Promise<void>): Promise<void> {
    const { campaign } = this.#deps;
    const startedMs = performance.now();
    for (;;) {
      const different = await this.#different();
      const tookMs = performance.now() - startedMs;
      if (different === undefined) {
        this.#slowestMs = Math.max(this.#slowestMs, Math.round(tookMs));
        campaign.figure("slowest change of groups in ms", this.#slowestMs);
        return;
      }
      if (tookMs > EFFECT_MS) {
        campaign.violation(`${different}, ${EFFECT_MS / 1_000} s after the change`);
        return;
      }
      await meanwhile?.();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Asks for each right of each user in each group's root, and for shares in it; the first difference in words. */
  async #different(): Promise<string | undefined> {
    const { users, oracle } = this.#deps;
    const asked = oracle.groups.owners().flatMap((root) =>
      users.map(async (user) => {
        const at = { root, path: "/" };
        const rights = [
          ["read", await answerOf(user.calls.getAttr(at, user)), "ok"],
          [
            "write",
            await answerOf(user.calls.refreshLock({ ...at, token: "urn:uuid:none" }, user)),
            "NO_SUCH_LOCK",
          ],
          ["share", await answerOf(user.calls.listShares(at, user)), "ok"],
        ] as const;
        const wrong = rights.find(([right, answer, allowed]) => {
          const verdict = oracle.verdict(user.email, root, "/", right);
          return answer !== (verdict === "ok" ? allowed : verdict);
        });
        return wrong && `${wrong[0]} of ${root} by ${user.email}: ${wrong[1]}`;
      }),
    );
    return (await Promise.all([...asked, ...this.#sharesAsked()])).find((each) => each !== undefined);
  }

  /** Shares end with their group, also where no user has a role whose end would tell. */
  #sharesAsked(): Promise<string | undefined>[] {
    const { users, oracle } = this.#deps;
    return oracle.groups.owners().flatMap((root) =>
      oracle.marked(root).flatMap(([path, email, mark]) => {
        const user = users.find((each) => each.email === email);
        if (mark !== "in" || user === undefined) return [];
        const ask = async (): Promise<string | undefined> => {
          const answer = await answerOf(user.calls.getAttr({ root, path }, user));
          const verdict = oracle.verdict(email, root, path, "read");
          return answer === verdict ? undefined : `read of ${root}:${path} by ${email}: ${answer}`;
        };
        return [ask()];
      }),
    );
  }
}

function token(
  email: string,
  values: readonly string[],
  iat: number,
): { metadata: { authorization: string } } {
  const claims = Buffer.from(JSON.stringify({ email, [GROUPS_CLAIM]: values, iat }));
  return { metadata: { authorization: `Bearer mock-jwt.${claims.toString("base64url")}` } };
}
