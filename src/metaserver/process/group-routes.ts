// The routes about groups: administrators make them, managers add members, nodes learn who has which role.
import type { AuditSink } from "#base/audit-act.ts";
import { isDoorSecret } from "#base/door-call.ts";
import { GroveError } from "#base/errors.ts";
import { canonicalUsername } from "#base/names.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import {
  checkedClaimValue,
  checkedGroupName,
  checkedGroupRole,
  type GroupChange,
  type GroupRole,
  groupPrincipal,
  personsUsername,
  type RoleGrant,
  strongerRole,
} from "#security/policy/group.ts";
import type { CallContext, ServiceHandlers } from "#wire/grpc/handler.ts";
import type {
  ChangeGroupRequest,
  CreateGroupRequest,
  GroupMember,
  GroupRoles,
  Group as Message,
  MetaServer,
} from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { type AdministratorDeps, requireAdministrator } from "./administrator.ts";
import { idTokenOf } from "./call-gate.ts";
import type { GroupGate, PlacedRoles } from "./group-gate.ts";
import { type NodeSpeakerDeps, speakerFor } from "./node-speaker.ts";
import { admitPerson } from "./subject-gate.ts";

/** Groups in one answer to a person. */
const GROUPS_PER_PAGE = 200;
/** Roles in one answer to a node. */
const ROLES_PER_PAGE = 4_000;

/** Dependencies of the routes. */
export interface GroupRoutesDeps extends AdministratorDeps, NodeSpeakerDeps {
  readonly directory: Pick<Directory, "findRoot" | "locateRoot" | "requireNode">;
  readonly groups: GroupGate;
  readonly audit: AuditSink;
}

/** The handlers. */
export type GroupRoutes = Pick<
  ServiceHandlers<typeof MetaServer>,
  "createGroup" | "listGroups" | "changeGroup" | "deleteGroup" | "listGroupRoles"
>;

/** Who asks: an administrator, or a person. */
interface Asker {
  readonly name: string;
  readonly isAdmin: boolean;
  /** What the person's own token says of groups; none for the password. */
  readonly values: readonly string[];
}

/** Makes the handlers. */
export function groupRoutes(deps: GroupRoutesDeps): GroupRoutes {
  const { directory, groups, audit, log } = deps;
  return {
    createGroup: (request, context) => create(deps, request, context),
    changeGroup: (request, context) => change(deps, request, context),

    async listGroups(request, context) {
      const asker = await askerOf(context, deps);
      if (request.name !== "") {
        const name = checkedGroupName(request.name);
        requireSight(deps, asker, name);
        return { groups: [await messageOf(deps, name, asker)], more: false };
      }
      const names = groups.groups
        .map(({ name }) => name)
        .filter((name) => name > request.after && (asker.isAdmin || groups.roleOf(asker.name, name)));
      const page = names.slice(0, GROUPS_PER_PAGE);
      const messages: Message[] = [];
      for (const name of page) messages.push({ ...(await messageOf(deps, name, asker)), members: [] });
      return { groups: messages, more: names.length > page.length };
    },

    async deleteGroup(request, context) {
      const by = await requireAdministrator(context, deps);
      const name = checkedGroupName(request.name);
      await groups.change({ kind: "delete", name });
      log.info("group_deleted", { group: name, by });
      audit({ act: "group.delete", actor: by, subject: groupPrincipal(name) });
      return {};
    },

    async listGroupRoles(request, context) {
      const { fsId } = request;
      await directory.requireNode({ fsId, speaker: speakerFor(fsId, context, deps) });
      const from = /^\d{1,7}$/.test(request.pageToken) ? Number(request.pageToken) : 0;
      if (groups.mark === "") {
        throw new GroveError("STORE_UNAVAILABLE", "the metadata store does not say who is in which group");
      }
      return { mark: groups.mark, ...rolesPage(groups.roles, from) };
    },
  };
}

async function create(
  deps: GroupRoutesDeps,
  request: CreateGroupRequest,
  context: CallContext,
): Promise<{ group: Message }> {
  const { groups, directory, clock, audit, log } = deps;
  const by = await requireAdministrator(context, deps);
  const name = checkedGroupName(request.name);
  if (groups.has(name)) {
    throw new GroveError("BAD_ARGUMENT", `there is a group ${name} already`);
  }
  const owner = groupPrincipal(name);
  const placed = await directory.findRoot(owner);
  // A group that failed half-way has left a place without files.
  const hasFiles = placed !== undefined && placed.isUnmade !== true;
  if (hasFiles && !request.withFiles) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `files of an earlier group ${name} are still there: create it with them, or choose another name`,
    );
  }
  // The root has its place before nodes hear of the group.
  const { fsId } = await directory.locateRoot(owner);
  groups.placed(name, fsId);
  const createdMs = Math.trunc(clock.wallMs());
  await groups.change({
    kind: "create",
    group: { name, createdBy: by, createdMs, members: [], claims: [] },
  });
  log.info("group_created", { group: name, by, node: fsId, with_files: hasFiles });
  audit({ act: "group.create", actor: by, subject: owner, detail: { node: fsId, with_files: hasFiles } });
  return { group: await messageOf(deps, name, { name: by, isAdmin: true, values: [] }) };
}

async function change(
  deps: GroupRoutesDeps,
  request: ChangeGroupRequest,
  context: CallContext,
): Promise<{ group: Message }> {
  const { groups, clock, audit, log } = deps;
  const asker = await askerOf(context, deps);
  const name = checkedGroupName(request.name);
  requireSight(deps, asker, name);
  const wanted = changeOf({ ...request, name }, asker.name, Math.trunc(clock.wallMs()));
  const isOfMember = wanted.kind === "add-member" || wanted.kind === "remove-member";
  if (!asker.isAdmin && !(isOfMember && groups.roleOf(asker.name, name) === "manage")) {
    throw isOfMember
      ? new GroveError(
          "NOT_OWNER",
          "permission denied: only members who manage the group, and administrators, may do this",
        )
      : new GroveError("NOT_ADMIN", "permission denied: only cluster administrators can do that");
  }
  requireNoOwnGain(groups, asker, wanted);
  await groups.change(wanted);
  const detail = { change: wanted.kind, ...subjectOf(wanted) };
  log.info("group_changed", { group: name, by: asker.name, ...detail });
  audit({ act: "group.change", actor: asker.name, subject: groupPrincipal(name), detail });
  return { group: await messageOf(deps, name, asker) };
}

/**
 * Refuses a role, or a longer one, that askers give to themselves by their own name or by a value that their
 * token has. Members by hand who manage may have it: theirs is a role that another person gave, without an end.
 */
function requireNoOwnGain(groups: GroupGate, { name: asker, values }: Asker, wanted: GroupChange): void {
  const given =
    wanted.kind === "add-member" && wanted.member.username === asker
      ? wanted.member.role
      : wanted.kind === "add-claim" && values.includes(wanted.claim.value)
        ? wanted.claim.role
        : undefined;
  if (given === undefined || !("name" in wanted)) return;
  const group = groups.groups.find(({ name }) => name === wanted.name);
  const own = group?.members.find(({ username }) => username === asker);
  if (own !== undefined && groups.roleOf(asker, wanted.name) !== undefined) {
    if (strongerRole(own.role, given) === own.role) return;
  }
  throw new GroveError(
    "BAD_ARGUMENT",
    "nobody gives a role to themselves; a member who manages, another administrator or the password can",
  );
}

/** A person without a role learns nothing of a group, not even whether there is one. */
function requireSight({ groups }: GroupRoutesDeps, asker: Asker, name: string): void {
  if (asker.isAdmin && groups.has(name)) return;
  if (!asker.isAdmin && groups.roleOf(asker.name, name) !== undefined) return;
  throw new GroveError("BAD_ARGUMENT", `there is no group ${name}${asker.isAdmin ? "" : " of yours"}`);
}

async function messageOf(
  { groups, directory }: GroupRoutesDeps,
  name: string,
  asker: Asker,
): Promise<Message> {
  const group = groups.groups.find((one) => one.name === name);
  const roles = groups.roles.find((one) => one.name === name)?.roles ?? [];
  const owner = groupPrincipal(name);
  const root = await directory.findRoot(owner);
  const claims = asker.isAdmin ? (group?.claims ?? []) : [];
  return {
    $typeName: "grove.v1.Group",
    name,
    owner,
    fsId: root?.fsId ?? "",
    address: root?.address ?? "",
    createdBy: group?.createdBy ?? "",
    createdMs: BigInt(group?.createdMs ?? 0),
    members: roles.map(memberMessage),
    claims: claims.map(({ value, role, setBy, setAtMs }) => ({
      $typeName: "grove.v1.GroupClaim",
      value,
      role,
      setBy,
      setAtMs: BigInt(setAtMs),
    })),
    ownRole: groups.roleOf(asker.name, name) ?? "",
  };
}

async function askerOf(context: CallContext, deps: GroupRoutesDeps): Promise<Asker> {
  const byPassword = context.metadata.get("x-admin-password-hash") !== undefined;
  if (byPassword) return { name: await requireAdministrator(context, deps), isAdmin: true, values: [] };
  const token = idTokenOf(context);
  if (isDoorSecret(token)) {
    throw new GroveError("NOT_OWNER", "permission denied: an app password may not do this; sign in");
  }
  const verified = await deps.tokenVerifier.verify(token, context.peer.address);
  await admitPerson(verified, deps);
  const { identity } = verified;
  const { adminUsername } = deps.administrators ?? {};
  return {
    name: identity.username,
    isAdmin: adminUsername !== undefined && identity.username === adminUsername,
    values: verified.groups ?? [],
  };
}

/** The change that a request asks for. Throws BAD_ARGUMENT. */
function changeOf({ name, change }: ChangeGroupRequest, setBy: string, setAtMs: number): GroupChange {
  switch (change.case) {
    case "addMember": {
      const username = personsUsername(change.value.username);
      const role = checkedGroupRole(change.value.role);
      return { kind: "add-member", name, member: { username, role, setBy, setAtMs } };
    }
    case "removeMember":
      return { kind: "remove-member", name, username: canonicalUsername(change.value) };
    case "addClaim": {
      const value = checkedClaimValue(change.value.value);
      const role: GroupRole = checkedGroupRole(change.value.role);
      return { kind: "add-claim", name, claim: { value, role, setBy, setAtMs } };
    }
    case "removeClaim":
      return { kind: "remove-claim", name, value: checkedClaimValue(change.value) };
    case undefined:
    default:
      throw new GroveError("BAD_ARGUMENT", "the request names no change");
  }
}

function subjectOf(change: GroupChange): Record<string, string> {
  if (change.kind === "add-member") return { user: change.member.username, member_role: change.member.role };
  if (change.kind === "remove-member") return { user: change.username };
  if (change.kind === "add-claim") return { claim: change.claim.value, member_role: change.claim.role };
  return change.kind === "remove-claim" ? { claim: change.value } : {};
}

/** The roles from a place on, as if all groups were one list. */
function rolesPage(
  groups: readonly PlacedRoles[],
  from: number,
): { groups: GroupRoles[]; nextPageToken: string } {
  const page: GroupRoles[] = [];
  let at = 0;
  for (const { name, fsId, roles } of groups) {
    // A group without members counts as one entry, so that nodes hear of it too.
    const size = Math.max(1, roles.length);
    const first = Math.max(0, from - at);
    const last = Math.min(size, from + ROLES_PER_PAGE - at);
    if (first < last) {
      const members = roles.slice(first, last).map(memberMessage);
      page.push({ $typeName: "grove.v1.GroupRoles", name, fsId, members });
    }
    at += size;
  }
  const end = from + ROLES_PER_PAGE;
  return { groups: page, nextPageToken: at > end ? String(end) : "" };
}

function memberMessage({ username, role, setBy, setAtMs, untilMs }: RoleGrant): GroupMember {
  return {
    $typeName: "grove.v1.GroupMember",
    username,
    role,
    setBy,
    setAtMs: BigInt(setAtMs),
    untilMs: BigInt(untilMs),
  };
}
