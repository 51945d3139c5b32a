// Hears from a MetaServer who has which role in which group, and makes the roots of groups that live here.
import type { AuditSink } from "#base/audit-act.ts";
import { GroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { KnownGroups, RoleChange } from "#security/identity/known-groups.ts";
import {
  checkedGroupName,
  checkedGroupRole,
  type GroupRoles,
  groupPrincipal,
} from "#security/policy/group.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { GroupRoles as Message, MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** Attempts at a list whose pages all have one mark. */
const ATTEMPTS = 3;
/** Pages of a list, at most. */
const PAGES_MAX = 1_000;

/** Dependencies of the reader. */
export interface GroupReaderDeps {
  readonly client: Pick<Client<typeof MetaServer>, "listGroupRoles">;
  readonly fsId: string;
  readonly groups: KnownGroups;
  /** Makes the root of a group that was given to this node, where it is missing. */
  readonly ensureRoot: (owner: string, isNews: boolean) => Promise<void>;
  readonly audit: AuditSink;
  readonly timeoutMs: number;
  readonly log: Logger;
}

/** The reader. Its methods never reject: the next heartbeat brings the mark again. */
export class GroupReader {
  readonly #deps: GroupReaderDeps;
  #ownGroups: readonly string[] = [];

  constructor(deps: GroupReaderDeps) {
    this.#deps = deps;
  }

  /** Reads the groups unless the mark confirms those known; an empty mark says nothing. */
  async hear(mark: string): Promise<void> {
    if (mark !== "" && !this.#deps.groups.confirm(mark)) await this.read();
    else await this.#ensureRoots(false);
  }

  /** Reads the groups. */
  async read(): Promise<void> {
    const { groups, log } = this.#deps;
    try {
      const { mark, messages } = await this.#list();
      this.#ownGroups = messages.filter(({ fsId }) => fsId === this.#deps.fsId).map(({ name }) => name);
      const changes = groups.take(mark, rolesOf(messages));
      for (const change of changes) this.#tell(change);
      await this.#ensureRoots(true);
    } catch (error) {
      const isOlder = error instanceof StatusError && error.code === Code.UNIMPLEMENTED;
      log[isOlder ? "debug" : "warn"]("groups_not_read", { error: errorText(error) });
    }
  }

  async #list(): Promise<{ mark: string; messages: Message[] }> {
    const { client, fsId, timeoutMs } = this.#deps;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const messages: Message[] = [];
      let mark: string | undefined;
      let pageToken = "";
      let isWhole = true;
      for (let pages = 0; pages === 0 || pageToken !== ""; pages++) {
        const page = await client.listGroupRoles({ fsId, pageToken }, { timeoutMs });
        mark ??= page.mark;
        isWhole = page.mark === mark && pages < PAGES_MAX;
        if (!isWhole) break;
        messages.push(...page.groups);
        pageToken = page.nextPageToken;
      }
      if (isWhole && mark !== undefined) return { mark, messages };
    }
    throw new GroveError("STORE_UNAVAILABLE", "the groups change again and again");
  }

  #tell({ group, username, now, before }: RoleChange): void {
    const { audit, log } = this.#deps;
    const act = now === undefined ? "group.role_end" : "group.role";
    const role = now?.role ?? before?.role ?? "";
    audit({ act, actor: now?.setBy ?? "metaserver", subject: username, detail: { group, role } });
    log.info("group_role", { group, user: username, member_role: now?.role ?? "none" });
  }

  async #ensureRoots(isNews: boolean): Promise<void> {
    for (const name of this.#ownGroups) {
      try {
        await this.#deps.ensureRoot(groupPrincipal(name), isNews);
      } catch (error) {
        this.#deps.log.warn("group_root_not_made", { group: name, error: errorText(error) });
      }
    }
  }
}

/** The roles in messages; a group in two pages is one. Throws BAD_ARGUMENT. */
function rolesOf(messages: readonly Message[]): GroupRoles[] {
  const groups = new Map<string, GroupRoles["roles"][number][]>();
  for (const { name, members } of messages) {
    const roles = groups.get(checkedGroupName(name)) ?? [];
    groups.set(name, roles);
    for (const { username, role, setBy, setAtMs, untilMs } of members) {
      roles.push({
        username,
        role: checkedGroupRole(role),
        setBy,
        setAtMs: Number(setAtMs),
        untilMs: Number(untilMs),
      });
    }
  }
  return [...groups].map(([name, roles]) => ({ name, roles }));
}
