// The user plane's routes: the roots that a signed-in user can reach, and their FileServers (spec 4.5, D19).
import type { Clock } from "#base/clock.ts";
import { isDoorSecret } from "#base/door-call.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import type { HandOver } from "#base/hand-over.ts";
import { INHERITED_ROOTS_LISTED_MAX, ROUTE_TTL_SECONDS, SHARED_ROOTS_LISTED_MAX } from "#base/limits.ts";
import { canonicalUsername, joinPath, splitPath } from "#base/names.ts";
import type { Directory, LocatedRoot, SharedRoot, SharePlace } from "#metaserver/directory/directory.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import { groupNameOf, groupPrincipal } from "#security/policy/group.ts";
import type { CallContext, ServiceHandlers } from "#wire/grpc/handler.ts";
import type { MetaServer, Root } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { handOverMessage } from "#wire/proto/user-state-message.ts";
import type { Administrators } from "./administrator.ts";
import type { Identified } from "./app-passwords.ts";
import { idTokenOf } from "./call-gate.ts";
import type { GroupGate } from "./group-gate.ts";
import type { SubjectGate } from "./subject-gate.ts";
import { admitPerson } from "./subject-gate.ts";
import type { UserStateGate } from "./user-state-gate.ts";

/** Bytes of shared roots in one page of GetRoots: far below the default limit of gRPC clients. */
const SHARED_ROOTS_PAGE_BYTES = 1_048_576;

/** Roots of groups that GetRoots lists for one user. */
const GROUP_ROOTS_LISTED_MAX = 500;

/** Dependencies of the routes. */
export interface UserRoutesDeps {
  readonly directory: Directory;
  readonly tokenVerifier: TokenVerifier;
  readonly subjects: SubjectGate;
  readonly userStates: Pick<UserStateGate, "requireEntry" | "states">;
  readonly groups: Pick<GroupGate, "has" | "heard" | "placed" | "roleOf" | "rolesOf">;
  /** The ways to prove administrator rights here; undefined when there are none. */
  readonly administrators?: Pick<Administrators, "adminUsername"> | undefined;
  readonly clock: Pick<Clock, "wallMs">;
  /** Where people come in; undefined where it is not known. */
  readonly webdavUrl?: string | undefined;
  /** The person for whom a door calls with an app password. */
  readonly identifyAtDoor: (appPassword: string, context: CallContext) => Promise<Identified>;
}

/** Bytes of a root in a message beside its texts: its id, tags and lengths. */
const ROOT_HEAD_BYTES = 64;

interface ListedRoot extends LocatedRoot {
  readonly path: string;
  readonly handOvers?: readonly HandOver[];
  readonly groupRole?: string;
}

/** The handlers of the user plane. */
export type UserRoutes = Pick<ServiceHandlers<typeof MetaServer>, "getRoots" | "navigate">;

/** Makes the handlers. */
export function userRoutes(deps: UserRoutesDeps): UserRoutes {
  const { directory, clock } = deps;
  const { states } = deps.userStates;
  return {
    async getRoots(request, context) {
      const { user, isBelowFolder } = await requireUser(context, deps);
      const after = readPageToken(request.pageToken);
      // What holds below one folder of one's own root tells of no other root.
      const found = isBelowFolder ? [] : await directory.rootsSharedWith(user, after);
      const shared = firstPage(found);
      const isAll = shared.length === found.length && found.length < SHARED_ROOTS_LISTED_MAX;
      const last = isAll ? undefined : shared.at(-1);
      const nextPageToken = last === undefined ? "" : pageToken(last);
      if (after !== undefined) return { roots: shared.map(toRoot), nextPageToken };
      const inherited = isBelowFolder ? [] : await inheritedRoots(deps, user);
      const ofGroups = isBelowFolder ? [] : await groupRoots(deps, user);
      const own = await directory.locateRoot(user).catch((error: unknown) => {
        // A visitor whose own root has no place yet still sees shared ones.
        if (
          shared.length + inherited.length + ofGroups.length > 0 &&
          isGroveError(error, "STARTING", "NODE_DRAINING")
        )
          return undefined;
        throw error;
      });
      const handOvers = states.handOversOf(user, clock.wallMs());
      const first = own === undefined ? [] : [{ ...own, path: "/", handOvers }];
      return { roots: [...first, ...ofGroups, ...inherited, ...shared].map(toRoot), nextPageToken };
    },

    async navigate(request, context) {
      const { user, isBelowFolder } = await requireUser(context, deps);
      const owner = request.root === "" ? user : canonicalUsername(request.root);
      if (isBelowFolder && owner !== user) throw notShared();
      const path = joinPath(splitPath(request.path === "" ? "/" : request.path));
      const root =
        owner === user ? await directory.locateRoot(user) : await rootOfAnother(deps, user, { owner, path });
      // A caller without a share on that way does not learn whether the root exists (D1).
      if (root === undefined) {
        throw notShared();
      }
      if (root.address === "") {
        throw new GroveError(
          "STARTING",
          "the FileServer that holds this root has not come back yet; try again",
        );
      }
      const { fsId, address, rootId } = root;
      const doorUrl = (deps.webdavUrl ?? "").replace(/\/dav\/?$/u, "");
      return { fsId, address, rootId, path, ttlSeconds: ROUTE_TTL_SECONDS, readOnly: false, doorUrl };
    },
  };
}

/** A root that the user may reach as a member or heir, or the place in it that is shared. */
async function rootOfAnother(
  deps: UserRoutesDeps,
  user: string,
  { owner, path }: SharePlace,
): Promise<LocatedRoot | undefined> {
  const { directory, groups, userStates, clock } = deps;
  const group = groupNameOf(owner);
  // To know where a group's root is gives an administrator no right to its files.
  const isAdministrator = user === deps.administrators?.adminUsername && groups.has(group ?? "");
  if (group !== undefined && (isAdministrator || groups.roleOf(user, group) !== undefined))
    return locateGroup(deps, group);
  const names = [user, ...groups.rolesOf(user).map(({ name }) => groupPrincipal(name))];
  const nowMs = clock.wallMs();
  const isHeir = names.some((name) => userStates.states.handOverTo(name, owner, nowMs) !== undefined);
  return isHeir ? directory.findRoot(owner) : directory.sharedRoot(user, { owner, path });
}

/** Where a group's root lives; it is placed again after its node was given up with it. */
async function locateGroup({ directory, groups }: UserRoutesDeps, group: string): Promise<LocatedRoot> {
  const root = await directory.locateRoot(groupPrincipal(group));
  groups.placed(group, root.fsId);
  return root;
}

/** The roots of the groups in which a user has a role. */
async function groupRoots({ directory, groups }: UserRoutesDeps, user: string): Promise<ListedRoot[]> {
  const roots: ListedRoot[] = [];
  for (const { name, role } of groups.rolesOf(user)) {
    if (roots.length === GROUP_ROOTS_LISTED_MAX) break;
    const root = await directory.findRoot(groupPrincipal(name));
    if (root !== undefined) roots.push({ ...root, path: "/", groupRole: role });
  }
  return roots;
}

/** The roots handed over to a user; the first page of them. */
async function inheritedRoots(
  { directory, userStates, groups, clock }: UserRoutesDeps,
  user: string,
): Promise<ListedRoot[]> {
  const roots: ListedRoot[] = [];
  const nowMs = clock.wallMs();
  const names = [user, ...groups.rolesOf(user).map(({ name }) => groupPrincipal(name))];
  for (const { owner, ...handOver } of names.flatMap((name) => userStates.states.inheritedBy(name, nowMs))) {
    if (roots.length === INHERITED_ROOTS_LISTED_MAX) break;
    const root = await directory.findRoot(owner);
    // A user without a root has none to hand over.
    if (root !== undefined) roots.push({ ...root, path: "/", handOvers: [handOver] });
  }
  return roots;
}

/** Who calls, and whether the credential holds below one folder of the user's own root alone. */
interface RouteCaller {
  readonly user: string;
  readonly isBelowFolder: boolean;
}

/** The user behind the ID token, or a door's app password. Throws why either does not count. */
async function requireUser(context: CallContext, deps: UserRoutesDeps): Promise<RouteCaller> {
  const token = idTokenOf(context);
  if (isDoorSecret(token)) {
    const { record, scope } = await deps.identifyAtDoor(token, context);
    return { user: record.owner, isBelowFolder: scope.folderId !== undefined };
  }
  const verified = await deps.tokenVerifier.verify(token, context.peer.address);
  await admitPerson(verified, deps);
  return { user: verified.identity.username, isBelowFolder: false };
}

function notShared(): GroveError {
  return new GroveError("NOT_SHARED", "nothing on this way is shared with you");
}

/** The shared roots that fit into a page; paths have up to 4 KB each. */
function firstPage(shared: readonly SharedRoot[]): readonly SharedRoot[] {
  let bytes = 0;
  const beyond = shared.findIndex(({ owner, path, address, fsId }) => {
    bytes += ROOT_HEAD_BYTES + Buffer.byteLength(owner + path + address + fsId);
    return bytes > SHARED_ROOTS_PAGE_BYTES;
  });
  return beyond < 0 ? shared : shared.slice(0, beyond);
}

/** The start of the next page, as opaque text for the client. */
function pageToken({ owner, path }: SharePlace): string {
  return Buffer.from(JSON.stringify([owner, path])).toString("base64url");
}

/** Throws BAD_ARGUMENT for a token that no reply has sent. */
function readPageToken(token: string): SharePlace | undefined {
  if (token === "") return undefined;
  try {
    const [owner, path] = JSON.parse(Buffer.from(token, "base64url").toString()) as unknown[];
    // Only what the store could have written goes back to it: other text may make a database fail.
    if (typeof owner === "string" && typeof path === "string" && isPlace(owner, path)) return { owner, path };
  } catch {
    // It is told below.
  }
  throw new GroveError("BAD_ARGUMENT", "page_token is none that this server has sent");
}

function isPlace(owner: string, path: string): boolean {
  return canonicalUsername(owner) === owner && joinPath(splitPath(path)) === path;
}

function toRoot(root: ListedRoot): Omit<Root, "$typeName" | "$unknown"> {
  const { owner, rootId, path, fsId, address, handOvers = [], groupRole = "" } = root;
  return { owner, rootId, path, fsId, address, handOvers: handOvers.map(handOverMessage), groupRole };
}
