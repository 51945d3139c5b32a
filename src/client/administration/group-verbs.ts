// What the verbs of `grove group` do at the directory, and their words.
import { formatBytes, parseBytes } from "#base/bytes.ts";
import { GroveError } from "#base/errors.ts";
import { U64_MAX } from "#base/limits.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { localTime } from "#client/terminal/local-time.ts";
import { checkedGroupName, checkedGroupRole, personsUsername } from "#security/policy/group.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { Group, GroupMember, MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { Administration, type AdministrationFlags, type Answer } from "./administration.ts";

/** The options of `grove group create`. */
export interface CreateFlags extends AdministrationFlags {
  readonly quota?: string;
  readonly withFiles: boolean;
}

/** The options of `grove group add` and `remove`. */
export interface ChangeFlags extends AdministrationFlags {
  readonly claim?: string;
}

/** The group, and the member where one is named. */
interface Named {
  readonly name: string;
  readonly user: string | undefined;
}

/** How soon every server knows of a change. */
const SOON = "on every server within seconds";

/** Makes a group, then its root by setting the quota. Throws the refusals of both. */
export async function createGroup(context: ClientContext, text: string, flags: CreateFlags): Promise<void> {
  const name = checkedGroupName(text);
  const quotaBytes = flags.quota === undefined ? 0n : sizeOf(flags.quota);
  await atDirectory(context, flags, async (administration) => {
    const { withFiles } = flags;
    const { group } = valueOf(
      await administration.onDirectory((client, options) => client.createGroup({ name, withFiles }, options)),
    );
    const { owner = "", fsId = "", address = "" } = group ?? {};
    const [set] = await administration.onNodes([{ name: fsId, address }], (files, options) =>
      files.setQuota({ username: owner, quotaBytes, inodeLimit: 0n }, options),
    );
    const problem = set?.problem ?? set?.value?.error ?? "";
    if (problem !== "") {
      throw new ClientError("NETWORK", `the group ${name} is made, and its quota is not set: ${problem}`, {
        todo: `Run 'grove quota set ${owner} SIZE --fileserver ${address}'`,
      });
    }
    if (context.isJson) {
      await context.printJson({
        name,
        owner,
        fs_id: fsId,
        address,
        quota_bytes: quotaBytes === 0n ? null : quotaBytes,
      });
      return;
    }
    const quota = quotaBytes === 0n ? "the default quota" : `a quota of ${formatBytes(quotaBytes)}`;
    await context.print(
      `The group ${name} has the root ${owner}:/ on ${fsId}, with ${quota}.`,
      `Add members with 'grove group add ${name} USER --role write'.`,
    );
  });
}

/** Lists groups by name. */
export async function listGroups(context: ClientContext, flags: AdministrationFlags): Promise<void> {
  await atDirectory(context, flags, async (administration) => {
    const groups: Group[] = [];
    for (let more = true, after = ""; more; ) {
      const page = valueOf(
        await administration.onDirectory((client, options) => client.listGroups({ after }, options)),
      );
      groups.push(...page.groups);
      after = page.groups.at(-1)?.name ?? "";
      more = page.more && page.groups.length > 0;
    }
    if (context.isJson) {
      await context.printJson({ groups: groups.map(jsonOf) });
      return;
    }
    if (groups.length === 0) context.note("There is no group with a role for you.");
    const width = Math.max(0, ...groups.map(({ owner }) => owner.length));
    await context.print(
      ...groups.map(
        ({ owner, ownRole, fsId }) => `${owner.padEnd(width)}  ${(ownRole || "-").padEnd(6)}  ${fsId}`,
      ),
    );
  });
}

/** Shows one group with its members. */
export async function showGroup(
  context: ClientContext,
  text: string,
  flags: AdministrationFlags,
): Promise<void> {
  const name = checkedGroupName(text);
  await atDirectory(context, flags, async (administration) => {
    const { groups } = valueOf(
      await administration.onDirectory((client, options) => client.listGroups({ name }, options)),
    );
    await tell(context, groups[0]);
  });
}

/** Adds a member or a claim. */
export async function addToGroup(
  context: ClientContext,
  named: Named,
  flags: ChangeFlags & { readonly role: string },
): Promise<void> {
  const role = checkedGroupRole(flags.role);
  const { username, value } = whoOf(named, flags);
  const base = { role, setBy: "", setAtMs: 0n };
  await change(context, named, flags, {
    change:
      value === undefined
        ? { case: "addMember", value: { ...base, username, untilMs: 0n } }
        : { case: "addClaim", value: { ...base, value } },
    words:
      value === undefined
        ? `${username} has the role ${role} in ${named.name}, ${SOON}.`
        : `Everybody whose sign-in names "${value}" has the role ${role} in ${named.name}, from their next sign-in on.`,
  });
}

/** Removes a member by hand, or a claim. */
export async function removeFromGroup(
  context: ClientContext,
  named: Named,
  flags: ChangeFlags,
): Promise<void> {
  const { username, value } = whoOf(named, flags);
  await change(context, named, flags, {
    change: value === undefined ? { case: "removeMember", value: username } : { case: "removeClaim", value },
    words:
      value === undefined
        ? `${username} is no member by hand of ${named.name} any more, ${SOON}. What ${username} put there stays.`
        : `The claim "${value}" makes no member of ${named.name} any more, ${SOON}.`,
  });
}

/** Ends all roles of a group. */
export async function deleteGroup(
  context: ClientContext,
  text: string,
  flags: AdministrationFlags,
): Promise<void> {
  const name = checkedGroupName(text);
  await atDirectory(context, flags, async (administration) => {
    valueOf(await administration.onDirectory((client, options) => client.deleteGroup({ name }, options)));
    if (context.isJson) await context.printJson({ name, deleted: true });
    else {
      await context.print(
        `The group ${name} is deleted, ${SOON}. Its files stay and nobody reaches them, by no share and no link either.`,
        `'grove user remove ${name}@group --reason TEXT' deletes them, and 'grove user hand-over ${name}@group' gives them to somebody.`,
      );
    }
  });
}

type Change = NonNullable<Parameters<Client<typeof MetaServer>["changeGroup"]>[0]["change"]>;

async function change(
  context: ClientContext,
  { name }: Named,
  flags: ChangeFlags,
  order: { readonly change: Change; readonly words: string },
): Promise<void> {
  const checked = checkedGroupName(name);
  await atDirectory(context, flags, async (administration) => {
    const { group } = valueOf(
      await administration.onDirectory((client, options) =>
        client.changeGroup({ name: checked, change: order.change }, options),
      ),
    );
    if (context.isJson) await context.printJson(group === undefined ? {} : jsonOf(group));
    else await context.print(order.words);
  });
}

/** Exactly one of both: a member, or a claim. Throws USAGE. */
function whoOf(
  { user }: Named,
  { claim }: ChangeFlags,
): { readonly username: string; readonly value?: string } {
  if ((user === undefined) === (claim === undefined)) {
    throw new ClientError("USAGE", "name a user, or a claim with --claim, and not both");
  }
  return claim === undefined ? { username: personsUsername(user ?? "") } : { username: "", value: claim };
}

async function tell(context: ClientContext, group: Group | undefined): Promise<void> {
  if (group === undefined) throw new GroveError("BAD_ARGUMENT", "there is no such group");
  if (context.isJson) {
    await context.printJson(jsonOf(group));
    return;
  }
  const { owner, fsId, address, createdBy, createdMs, members, claims } = group;
  const width = Math.max(0, ...members.map(({ username }) => username.length));
  await context.print(
    `${owner}:/ on ${fsId} ${address}, made by ${createdBy} at ${localTime(Number(createdMs))}`,
    ...claims.map(({ value, role }) => `  by the claim "${value}"  ${role}`),
    ...members.map(
      (member) => `  ${member.username.padEnd(width)}  ${member.role.padEnd(6)}  ${byOf(member)}`,
    ),
    ...(members.length === 0 ? ["  no members yet"] : []),
  );
}

function byOf({ setBy, setAtMs, untilMs }: GroupMember): string {
  return setBy === "claim"
    ? `by claim, until ${localTime(Number(untilMs))} without another sign-in`
    : `by ${setBy} at ${localTime(Number(setAtMs))}`;
}

function jsonOf(group: Group): object {
  return {
    name: group.name,
    owner: group.owner,
    fs_id: group.fsId,
    address: group.address,
    own_role: group.ownRole === "" ? null : group.ownRole,
    created_by: group.createdBy,
    created_ms: group.createdMs,
    members: group.members.map(({ username, role, setBy, setAtMs, untilMs }) => ({
      username,
      role,
      set_by: setBy,
      set_at_ms: setAtMs,
      until_ms: untilMs === 0n ? null : untilMs,
    })),
    claims: group.claims.map(({ value, role, setBy, setAtMs }) => ({
      value,
      role,
      set_by: setBy,
      set_at_ms: setAtMs,
    })),
  };
}

function sizeOf(text: string): bigint {
  const bytes = parseBytes(text);
  if (bytes !== undefined && bytes > 0n && bytes <= U64_MAX) return bytes;
  throw new ClientError("USAGE", `${JSON.stringify(text)} is not a size`, {
    todo: "Write bytes, or a number with KiB, MiB, GiB or TiB.",
  });
}

/** The answer's value. Throws the refusal. */
function valueOf<T>({ value, error, problem }: Answer<T>): T {
  if (value !== undefined) return value;
  if (error instanceof Error) throw error;
  throw new ClientError("NETWORK", problem ?? "the directory did not answer");
}

async function atDirectory(
  context: ClientContext,
  flags: AdministrationFlags,
  act: (administration: Administration) => Promise<void>,
): Promise<void> {
  const administration = await Administration.open(context, flags);
  try {
    await act(administration);
  } finally {
    administration.close();
  }
}
