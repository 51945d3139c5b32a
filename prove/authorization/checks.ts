// Single requests to a FileServer, each with the oracle's answer; none changes anything.

import type { SeededRandom } from "#prove/seeded-random.ts";
import { answerOf, reasonOf, type SignedIn } from "#prove/served-node.ts";
import { createClient } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { Cast, Check } from "./cast.ts";
import { groupCheck, memberCheck } from "./group-checks.ts";
import { guestCheck } from "./guests.ts";
import type { Bounds, Oracle } from "./oracle.ts";

const ADMIN = "admin@example.com";

/** Headers that claim an identity, and that the server must ignore. */
const CLAIMS = [
  "x-user",
  "x-username",
  "x-forwarded-user",
  "x-forwarded-for",
  "forwarded",
  "x-admin",
  "from",
];

/** Draws a request; mostly the cheap ones. */
export function drawCheck(cast: Cast): Check {
  const { random } = cast;
  const draw = random.below(100);
  if (draw < 46) return placeCheck(cast);
  if (draw < 53) return memberCheck(cast, random.pick(random.chance(0.3) ? cast.visitors : cast.users));
  if (draw < 54) return groupCheck(cast);
  if (draw < 58 && cast.guests.length > 0) return guestCheck(cast, random.pick(cast.guests), answerAt);
  if (draw < 66) return visitorCheck(cast);
  if (draw < 70) return visitorsLimitCheck(cast);
  if (draw < 80) return ownersCheck(cast);
  if (draw < 86) return tokenCheck(cast);
  if (draw < 90) return quotaCheck(cast);
  if (draw < 95) return explainCheck(cast);
  return draw < 98 ? setQuotaCheck(cast) : sessionCheck(cast);
}

/** Asks beside a share, under a name with the same prefix: access to the one gives none to the other. */
export function neighbourCheck(cast: Cast): Check {
  const { random, oracle, users } = cast;
  const shares = oracle.shares();
  if (shares.length === 0) return placeCheck(cast);
  const { owner, path: shared, user } = random.pick(shares);
  const caller = users.find(({ email }) => email === user);
  if (caller === undefined) return placeCheck(cast);
  const path = `${shared}${random.pick(["0", "b", " ", ".", "-", "b/f"])}`;
  const root = written(random, owner);
  const as = credentials(cast, caller);
  return {
    what: `attr of ${owner}:${path}, beside what is shared, by ${user}`,
    ask: () => answerOf(caller.calls.getAttr({ root, path }, as)),
    wanted: () => {
      const verdict = oracle.verdict(user, owner, path, "read");
      return verdict === "ok" ? answerAt(oracle, owner, path, "attr") : verdict;
    },
  };
}

/** A user, and the owner of a root: the same, another user, or a group. */
function two({ users, random, oracle }: Cast): { caller: SignedIn; owner: string } {
  const caller = random.pick(users);
  if (random.chance(0.2)) return { caller, owner: random.pick(oracle.groups.owners()) };
  return { caller, owner: random.chance(0.3) ? caller.email : random.pick(users).email };
}

/** Writes the root in one of the forms that a request may use. */
function written(random: SeededRandom, owner: string): string {
  return random.chance(0.1) ? owner.toUpperCase() : owner;
}

/** The session's header, and claims without effect. */
function credentials({ random, users }: Cast, caller: SignedIn): { metadata: Record<string, string> } {
  if (random.chance(0.8)) return { metadata: { ...caller.metadata } };
  return { metadata: { ...caller.metadata, [random.pick(CLAIMS)]: random.pick(users).email } };
}

/** Draws a user and a place: sometimes where a share of that user begins or ends. */
function visit(cast: Cast): { caller: SignedIn; owner: string; path: string } {
  const { random, oracle, users, places } = cast;
  const { caller, owner } = two(cast);
  const marked = random.chance(0.3) ? oracle.marked(owner) : [];
  if (marked.length === 0) return { caller, owner, path: random.pick(places) };
  const [at, user] = random.pick(marked);
  const near = oracle.paths(owner).filter((path) => path.startsWith(at));
  return { caller: users.find(({ email }) => email === user) ?? caller, owner, path: random.pick(near) };
}

/** The same through a door, within the bounds of an app password. */
function visitorCheck(cast: Cast): Check {
  const { random, oracle } = cast;
  const caller = random.pick(cast.visitors);
  const elsewhere = visit(cast);
  const owner = random.chance(0.7) ? caller.email : elsewhere.owner;
  const inFolder = oracle
    .paths(caller.email)
    .filter((path) => oracle.verdictWithin(caller.bounds, caller.email, caller.email, path, "read") === "ok");
  const isNear = owner === caller.email && inFolder.length > 0 && random.chance(0.5);
  return placeCheck(
    cast,
    { caller, owner, path: isNear ? random.pick(inFolder) : elsewhere.path },
    caller.bounds,
  );
}

/** What no app password may do, even in its owner's own root. */
function visitorsLimitCheck({ random, visitors, users, places }: Cast): Check {
  const caller = random.pick(visitors);
  const { calls, email } = caller;
  const as = { metadata: { ...caller.metadata } };
  const path = random.pick(places);
  const acts: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["share", () => calls.share({ path, user: random.pick(users).email }, as)],
    ["list shares", () => calls.listShares({ path }, as)],
    ["break locks", () => calls.unlock({ path, breakLocks: true }, as)],
    ["list sessions", () => calls.listSessions({}, as)],
    ["end sessions", () => calls.endSession({ everywhere: true }, as)],
  ];
  const [name, act] = random.pick(acts);
  return {
    what: `${name} by an app password of ${email}`,
    ask: () => answerOf(act()),
    wanted: () => "NOT_OWNER",
  };
}

/** Reads, and writes that the place's own state refuses. */
function placeCheck(cast: Cast, at = visit(cast), bounds?: Bounds): Check {
  const { random, oracle } = cast;
  const { caller, owner, path } = at;
  const { calls } = caller;
  const root = written(random, owner);
  const as = credentials(cast, caller);
  const call = random.pick([
    "attr",
    "attr",
    "attr",
    "attr",
    "list",
    "read",
    "folder",
    "create",
    "write",
    "properties",
    "change properties",
    "locks",
    "lock",
  ] as const);
  const ask = async (): Promise<string> => {
    switch (call) {
      case "attr": {
        const attr = await calls.getAttr({ root, path }, as);
        return attr.owner === owner && attr.path === path ? "ok" : `an Attr of ${attr.owner}:${attr.path}`;
      }
      case "list":
        return await listed(cast, { caller, owner, path }, () => calls.listDir({ root, path }, as));
      case "read":
        return `ok ${Buffer.from((await calls.readFile({ root, path }, as)).data).toString()}`;
      case "folder":
        await calls.changeDir({ root, path }, as);
        return "ok";
      case "create": {
        // In a folder that does not exist, so that it changes nothing either way.
        const answer = await answerOf(
          calls.createFile({ root, path: `${path === "/" ? "" : path}/none/new` }, as),
        );
        return answer === "NO_SUCH_PATH" || answer === "NOT_DIRECTORY" ? "no place" : answer;
      }
      case "properties":
        await calls.getProperties({ root, path }, as);
        return "ok";
      case "locks":
        await calls.listLocks({ root, path, below: true }, as);
        return "ok";
      case "change properties":
        // Without a change, so that it changes nothing either way.
        await calls.changeProperties({ root, path, changes: [] }, as);
        return "ok";
      case "lock":
        await calls.refreshLock({ root, path, token: "urn:uuid:none" }, as);
        return "a lock";
      default:
        await calls.writeFile({ root, path, ifMatch: "none", data: Buffer.from("x") }, as);
        return "written";
    }
  };
  const right = WRITING.includes(call) ? "write" : "read";
  const wanted = (): string => {
    const verdict = oracle.verdictWithin(bounds, caller.email, owner, path, right);
    return verdict === "ok" ? answerAt(oracle, owner, path, call) : verdict;
  };
  const by = bounds === undefined ? caller.email : `an app password of ${caller.email}`;
  return { what: `${call} of ${owner}:${path} by ${by}`, ask: () => reasonIn(ask), wanted };
}

/**
 * Returns "ok", unless the listing has an entry that its reader may not see, both when it was asked and when
 * it was answered.
 */
async function listed(
  { oracle }: Cast,
  { caller, owner, path }: { caller: SignedIn; owner: string; path: string },
  ask: () => Promise<{ entries: readonly { path: string }[] }>,
): Promise<string> {
  const before = oracle.seenIn(caller.email, owner, path);
  const { entries } = await ask();
  const after = oracle.seenIn(caller.email, owner, path);
  const leaked = entries.find((entry) => !before.has(entry.path) && !after.has(entry.path));
  return leaked === undefined ? "ok" : `a listing with ${leaked.path}`;
}

/** Calls that need the right to write. */
const WRITING: readonly string[] = ["create", "write", "change properties", "lock"];

function answerAt(oracle: Oracle, owner: string, path: string, call: string): string {
  const entry = oracle.entry(owner, path);
  if (call === "create") return "no place";
  if (entry === undefined) return "NO_SUCH_PATH";
  if (call === "attr" || call === "locks" || call.endsWith("properties")) return "ok";
  if (call === "lock") return "NO_SUCH_LOCK";
  if (call === "list" || call === "folder") return entry.isFolder ? "ok" : "NOT_DIRECTORY";
  if (entry.isFolder) return "IS_DIRECTORY";
  return call === "read" ? `ok ${entry.content}` : "ETAG_MISMATCH";
}

/** Operations that only owners may do, asked by others, and moves by users without a share. */
function ownersCheck(cast: Cast): Check {
  const { random, oracle } = cast;
  const { caller, owner } = two(cast);
  if (caller.email === owner) return placeCheck(cast);
  // A member's would succeed.
  if (oracle.groups.owners().includes(owner)) return memberCheck(cast, caller);
  const { calls } = caller;
  const path = random.pick(cast.places);
  const as = credentials(cast, caller);
  const root = written(random, owner);
  const acts: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["delete", () => calls.deleteFile({ root, path, recursive: true }, as)],
    ["trash", () => calls.trashFile({ root, path }, as)],
    ["share", () => calls.share({ root, path, user: caller.email }, as)],
    ["unshare", () => calls.unshare({ root, path, user: random.pick(cast.users).email }, as)],
    ["list shares", () => calls.listShares({ root, path }, as)],
    ["look into the trash", () => calls.showTrash({ root }, as)],
    ["purge", () => calls.purgeTrash({ root }, as)],
    ["restore", () => calls.restoreFile({ root, trashId: "none" }, as)],
  ];
  const isLetIn = oracle.verdict(caller.email, owner, path, "read") === "ok";
  if (!isLetIn && random.chance(0.4)) {
    const request = { root, path, targetPath: `${path}x` };
    const ask = (): Promise<string> =>
      answerOf(random.chance(0.5) ? calls.rename(request, as) : calls.copy(request, as));
    return { what: `move of ${owner}:${path} by ${caller.email}`, ask, wanted: () => "NOT_SHARED" };
  }
  const [name, act] = random.pick(acts);
  return {
    what: `${name} at ${owner}:${path} by ${caller.email}`,
    ask: () => answerOf(act()),
    wanted: () => "NOT_OWNER",
  };
}

function tokenCheck(cast: Cast): Check {
  const { random } = cast;
  const caller = random.pick(cast.users);
  const [token, refusal] = random.pick(cast.badTokens);
  const metadata = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const path = random.pick(cast.places);
  const ask = (): Promise<string> =>
    answerOf(createClient(FileServer, caller.channels[0] as never).getAttr({ path }, { metadata }));
  return { what: `a call with the token ${token?.slice(0, 12)}…`, ask, wanted: () => refusal };
}

function quotaCheck(cast: Cast): Check {
  const { caller, owner } = two(cast);
  const ask = (): Promise<string> =>
    answerOf(caller.calls.getQuota({ root: owner }, credentials(cast, caller)));
  const wanted = (): string => (cast.oracle.seesQuota(caller.email, owner, ADMIN) ? "ok" : "NOT_SHARED");
  return { what: `the quota of ${owner} by ${caller.email}`, ask, wanted };
}

function explainCheck(cast: Cast): Check {
  const { random, oracle } = cast;
  const { caller, owner } = two(cast);
  const path = random.pick(cast.places);
  const permission = random.below(3) as 0 | 1 | 2;
  const right = (["read", "write", "delete"] as const)[permission];
  const ask = async (): Promise<string> => {
    const said = await caller.calls.explain({ root: owner, path, permission }, credentials(cast, caller));
    return ["NOT_SHARED", "NOT_OWNER"].includes(said.reason) ? said.reason : "ok";
  };
  const wanted = (): string => oracle.verdict(caller.email, owner, path, right);
  return { what: `why ${right} at ${owner}:${path} by ${caller.email}`, ask: () => reasonIn(ask), wanted };
}

function setQuotaCheck(cast: Cast): Check {
  const { caller, owner } = two(cast);
  const metadata = { ...credentials(cast, caller).metadata, "x-admin-user": ADMIN };
  const ask = async (): Promise<string> => {
    const { success } = await caller.calls.setQuota({ username: owner, quotaBytes: 1n }, { metadata });
    return success ? "set" : "refused";
  };
  return {
    what: `a quota for ${owner} set by ${caller.email}`,
    ask: () => reasonIn(ask),
    wanted: () => "refused",
  };
}

/** Another user's session is neither listed nor ended. */
function sessionCheck(cast: Cast): Check {
  const { caller, owner } = two(cast);
  const other = cast.users.find(({ email }) => email === owner);
  const ask = async (): Promise<string> => {
    if (other === undefined || other === caller) return "0";
    const theirs = await other.calls.listSessions({}, other);
    const sessionId = theirs.sessions[0]?.sessionId ?? "";
    const { ended } = await caller.calls.endSession({ sessionId }, credentials(cast, caller));
    const mine = await caller.calls.listSessions({}, caller);
    return String(ended + mine.sessions.filter((session) => session.sessionId === sessionId).length);
  };
  return {
    what: `a session of ${owner} ended by ${caller.email}`,
    ask: () => reasonIn(ask),
    wanted: () => "0",
  };
}

async function reasonIn(ask: () => Promise<string>): Promise<string> {
  try {
    return await ask();
  } catch (error) {
    return reasonOf(error);
  }
}
