// A node's copy of who has which role in which group: `groups.json` in the data folder. It counts for an hour
// after a MetaServer has confirmed it.
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { readStateFile } from "#os/state-file.ts";
import {
  GROUP_ROLES,
  type GroupRole,
  type GroupRoles,
  type RoleGrant,
  strongerRole,
} from "#security/policy/group.ts";

/** Name of the file in the data folder. */
export const GROUPS_FILE = "groups.json";
/** How long roles count while no MetaServer confirms them. */
export const GROUP_ROLES_HOLD_MS: number = 60 * 60_000;
/** How often the file is written again while nothing but the time of the confirmation changes. */
const KEEP_EVERY_MS = 5 * 60_000;
/** A wall clock that was set back by more than this makes what the file says unconfirmed. */
const CLOCK_SET_BACK_MAX_MS = 60_000;

const groupsFile = z.strictObject({
  schema: z.literal(1),
  confirmedMs: z.number(),
  groups: z.array(
    z.strictObject({
      name: z.string(),
      roles: z.array(
        z.strictObject({
          username: z.string(),
          role: z.enum(GROUP_ROLES as readonly [GroupRole, ...GroupRole[]]),
          setBy: z.string(),
          setAtMs: z.number(),
          untilMs: z.number(),
        }),
      ),
    }),
  ),
});

/** A role that began, ended or changed. */
export interface RoleChange {
  readonly group: string;
  readonly username: string;
  /** Undefined for one that is over. */
  readonly now: RoleGrant | undefined;
  readonly before: RoleGrant | undefined;
}

/** Dependencies of the copy. */
export interface KnownGroupsDeps {
  /** Path of the file. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** True for a user who was removed after a moment. */
  readonly isGoneSince: (username: string, setAtMs: number, nowMs: number) => boolean;
}

/** The copy. */
export class KnownGroups {
  readonly #deps: KnownGroupsDeps;
  #groups: readonly GroupRoles[];
  #names: ReadonlySet<string> = new Set();
  #byUser: ReadonlyMap<string, readonly (readonly [group: string, grant: RoleGrant])[]> = new Map();
  /** Mark of what is known; undefined until a MetaServer has said it to this process. */
  #mark: string | undefined;
  #confirmedSteadyMs: number;
  #confirmedMs = 0;
  #keptSteadyMs = Number.NEGATIVE_INFINITY;
  /** False for a node that has never heard of groups: the first answer is no change. */
  #hasHeard: boolean;
  #lastWrite: Promise<void> = Promise.resolve();
  #isWriteWaiting = false;

  private constructor(deps: KnownGroupsDeps, kept: z.infer<typeof groupsFile> | undefined) {
    this.#deps = deps;
    this.#groups = kept?.groups ?? [];
    this.#hasHeard = kept !== undefined;
    const ageMs = deps.clock.wallMs() - (kept?.confirmedMs ?? Number.NEGATIVE_INFINITY);
    const isOrdered = ageMs >= -CLOCK_SET_BACK_MAX_MS;
    this.#confirmedSteadyMs = isOrdered
      ? deps.clock.steadyMs() - Math.max(0, ageMs)
      : Number.NEGATIVE_INFINITY;
    this.#index();
  }

  /** Opens or creates the copy. A damaged file is as good as none: nobody has a role until it is heard again. */
  static async open(deps: KnownGroupsDeps): Promise<KnownGroups> {
    const kept = await readStateFile(deps.path, groupsFile);
    if (kept === "broken") deps.log.error("groups_file_broken", { path: deps.path });
    return new KnownGroups(deps, typeof kept === "string" ? undefined : kept);
  }

  /** True for a group that there is, by what was heard last. */
  has(group: string): boolean {
    return this.#names.has(group);
  }

  /** The user's role in a group at this moment; undefined for none. The cost does not depend on the group. */
  roleOf(username: string, group: string): GroupRole | undefined {
    return this.rolesOf(username).find(({ name }) => name === group)?.role;
  }

  /** All roles of a user at this moment, by group. */
  rolesOf(username: string): { readonly name: string; readonly role: GroupRole }[] {
    const { clock, isGoneSince } = this.#deps;
    if (clock.steadyMs() - this.#confirmedSteadyMs > GROUP_ROLES_HOLD_MS) return [];
    const nowMs = clock.wallMs();
    const roles = new Map<string, GroupRole>();
    for (const [name, { role, untilMs, setAtMs }] of this.#byUser.get(username) ?? []) {
      if (untilMs !== 0 && untilMs <= nowMs) continue;
      if (isGoneSince(username, setAtMs, nowMs)) continue;
      roles.set(name, strongerRole(roles.get(name) ?? role, role));
    }
    return [...roles].map(([name, role]) => ({ name, role }));
  }

  /** Takes a MetaServer's mark as the confirmation of what is known; false when it is another one. */
  confirm(mark: string): boolean {
    if (mark !== this.#mark) return false;
    this.#confirmed();
    return true;
  }

  /** Takes in what a MetaServer has said, and returns what changed: nothing for the first answer ever. */
  take(mark: string, groups: readonly GroupRoles[]): RoleChange[] {
    const changes = this.#hasHeard ? changesOf(this.#groups, groups) : [];
    const isNew = !this.#hasHeard || JSON.stringify(groups) !== JSON.stringify(this.#groups);
    this.#hasHeard = true;
    this.#groups = groups;
    this.#mark = mark;
    this.#index();
    if (isNew) this.#keptSteadyMs = Number.NEGATIVE_INFINITY;
    this.#confirmed();
    return changes;
  }

  /** Resolves when what was taken in last is in the file, or cannot be. */
  kept(): Promise<void> {
    return this.#lastWrite;
  }

  #confirmed(): void {
    const { clock } = this.#deps;
    const nowMs = clock.steadyMs();
    this.#confirmedSteadyMs = nowMs;
    this.#confirmedMs = Math.trunc(clock.wallMs());
    if (nowMs - this.#keptSteadyMs < KEEP_EVERY_MS) return;
    this.#keptSteadyMs = nowMs;
    this.#keep();
  }

  /** Writes what is known when its turn comes: changes in quick succession are one write, not a queue of them. */
  #keep(): void {
    if (this.#isWriteWaiting) return;
    this.#isWriteWaiting = true;
    const { path, log } = this.#deps;
    this.#lastWrite = this.#lastWrite
      .then(() => {
        this.#isWriteWaiting = false;
        const content = { schema: 1, confirmedMs: this.#confirmedMs, groups: this.#groups };
        return writeFileAtomic(path, JSON.stringify(content));
      })
      .catch((error: unknown) => log.warn("groups_not_kept", { error: errorText(error) }));
  }

  #index(): void {
    this.#names = new Set(this.#groups.map(({ name }) => name));
    const byUser = new Map<string, (readonly [string, RoleGrant])[]>();
    for (const { name, roles } of this.#groups) {
      for (const grant of roles) {
        const own = byUser.get(grant.username);
        if (own === undefined) byUser.set(grant.username, [[name, grant]]);
        else own.push([name, grant]);
      }
    }
    this.#byUser = byUser;
  }
}

function changesOf(before: readonly GroupRoles[], now: readonly GroupRoles[]): RoleChange[] {
  const [then, next] = [strongestOf(before), strongestOf(now)];
  const changes: RoleChange[] = [];
  for (const key of new Set([...then.keys(), ...next.keys()])) {
    const [old, fresh] = [then.get(key), next.get(key)];
    if (old?.grant.role === fresh?.grant.role) continue;
    const { group, grant } = (fresh ?? old) as { group: string; grant: RoleGrant };
    changes.push({ group, username: grant.username, now: fresh?.grant, before: old?.grant });
  }
  return changes;
}

function strongestOf(groups: readonly GroupRoles[]): Map<string, { group: string; grant: RoleGrant }> {
  const found = new Map<string, { group: string; grant: RoleGrant }>();
  for (const { name, roles } of groups) {
    for (const grant of roles) {
      const key = `${name} ${grant.username}`;
      const known = found.get(key)?.grant;
      if (known === undefined || strongerRole(known.role, grant.role) !== known.role) {
        found.set(key, { group: name, grant });
      }
    }
  }
  return found;
}
