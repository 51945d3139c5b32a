// Requests about the root of a group and about the group itself; none changes anything.
import { answerOf, type SignedIn } from "#prove/served-node.ts";
import type { Cast, Check } from "./cast.ts";
import { nameOf } from "./groups.ts";
import type { Bounds, Right } from "./oracle.ts";

/** What needs the right to delete or to share; each ends at what is not there. */
export function memberCheck(cast: Cast, caller: SignedIn & { readonly bounds?: Bounds }): Check {
  const { random, oracle } = cast;
  const owner = random.pick(oracle.groups.owners());
  const path = random.pick(cast.places);
  const root = random.chance(0.1) ? owner.toUpperCase() : owner;
  const { calls } = caller;
  const gone = `${path === "/" ? "" : path}/none/gone`;
  const as = { metadata: { ...caller.metadata } };
  const acts: readonly (readonly [string, Right, () => Promise<unknown>, allowed: readonly string[]])[] = [
    ["a look into the trash", "delete", () => calls.showTrash({ root }, as), ["ok"]],
    ["delete", "delete", () => calls.deleteFile({ root, path: gone, recursive: true }, as), MISSING],
    ["trash", "delete", () => calls.trashFile({ root, path: gone }, as), MISSING],
    ["restore", "delete", () => calls.restoreFile({ root, trashId: "none" }, as), ["NO_SUCH_PATH"]],
    ["list shares", "share", () => calls.listShares({ root, path: gone }, as), MISSING],
    ["share", "share", () => calls.share({ root, path: gone, user: "user0@example.com" }, as), MISSING],
    ["list links", "share", () => calls.listLinks({ root, path: "/" }, as), ["ok"]],
    ["make a link", "share", () => calls.createLink({ root, path: gone }, as), MISSING],
    ["end a link", "share", () => calls.revokeLink({ root, id: "none" }, as), ["NO_SUCH_PATH"]],
    ["break locks", "share", () => calls.unlock({ root, path: gone, breakLocks: true }, as), ["ok"]],
  ];
  const [name, right, act, allowed] = random.pick(acts);
  const ask = async (): Promise<string> => {
    const answer = await answerOf(act());
    return allowed.includes(answer) ? "allowed" : answer;
  };
  const wanted = (): string => {
    const verdict = oracle.verdictWithin(caller.bounds, caller.email, owner, "/", right);
    return verdict === "ok" ? "allowed" : verdict;
  };
  const by = caller.bounds === undefined ? caller.email : `an app password of ${caller.email}`;
  return { what: `${name} in ${owner} by ${by}`, ask, wanted };
}

const MISSING: readonly string[] = ["NO_SUCH_PATH", "NOT_DIRECTORY"];

/** Changes of a group that its caller must not make, and looks at it, at the MetaServer. */
export function groupCheck({ random, oracle, users, groups }: Cast): Check {
  const caller = random.pick(users);
  const owner = random.pick(oracle.groups.owners());
  const name = nameOf(owner);
  const meta = groups.meta;
  const as = (): ReturnType<typeof groups.tokenOf> => groups.tokenOf(caller.email);
  const unheard = (): ReturnType<typeof groups.tokenOf> => groups.tokenOf(caller.email, { isHeard: false });
  const other = random.pick(users.filter((each) => each !== caller)).email;
  const seen = (refusal: string) => (rank: number) => (rank > 0 ? refusal : "BAD_ARGUMENT");
  const acts: readonly (readonly [string, () => Promise<unknown>, wanted: (rank: number) => string])[] = [
    ["look at", () => meta.listGroups({ name }, as()), seen("ok")],
    [
      "add a claim to",
      () =>
        meta.changeGroup({ name, change: { case: "addClaim", value: { value: "all", role: "read" } } }, as()),
      seen("NOT_ADMIN"),
    ],
    ["delete", () => meta.deleteGroup({ name }, unheard()), () => "NOT_ADMIN"],
    ["create", () => meta.createGroup({ name }, unheard()), () => "NOT_ADMIN"],
    [
      // Who is no member by hand, so that it changes nothing for one who manages either.
      "remove a stranger from",
      () => meta.changeGroup({ name, change: { case: "removeMember", value: `no.${other}` } }, as()),
      (rank) => (rank === 3 || rank === 0 ? "BAD_ARGUMENT" : "NOT_OWNER"),
    ],
  ];
  const [act, ask, wanted] = random.pick(acts);
  return {
    what: `${act} ${name} by ${caller.email}`,
    ask: () => answerOf(ask()),
    wanted: () => wanted(oracle.groups.rank(caller.email, owner)),
  };
}
