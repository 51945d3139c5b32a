// A MetaServer's copy of the groups: who has which role, for routes, nodes and managers; and what claims say.
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import type { VerifiedToken } from "#security/identity/claims.ts";
import {
  type ClaimRecord,
  type Group,
  type GroupBook,
  type GroupChange,
  type GroupRole,
  type GroupRoles,
  groupPrincipal,
  rolesOfGroups,
  strongerRole,
} from "#security/policy/group.ts";
import type { UserStateGate } from "./user-state-gate.ts";

/** Interval of the checks for changes by another MetaServer. */
const LOOK_INTERVAL_MS = 1_000;
/** Without a look for this long, nodes hear no mark: what is known here may be over. */
const LOOK_LIFE_MS = 10_000;
/** People whose last token is remembered, also where it said nothing new. */
const TOKENS_KEPT = 50_000;
/** Later tokens that said nothing new and are on their way to the store; of more, the next call says it again. */
const NOTES_AT_ONCE = 64;
/** How exact the moment is at which a claim was seen last. */
const SEEN_EVERY_MS = 24 * 60 * 60_000;

/** Dependencies of the gate. */
export interface GroupGateDeps {
  readonly directory: Pick<Directory, "changeGroups" | "findRoot" | "groupBook" | "groupsMark">;
  /** Claim with the names of a person's groups; undefined where claims make no members. */
  readonly groupsClaim?: string | undefined;
  /** Decisions about users: a removed one has no role any more. */
  readonly userStates: Pick<UserStateGate, "states">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A group that a user has a role in. */
export interface OwnRole {
  readonly name: string;
  readonly role: GroupRole;
}

/** Roles of one group, and the node that its root was given to. */
export interface PlacedRoles extends GroupRoles {
  readonly fsId: string;
}

/** The gate of one MetaServer. */
export class GroupGate {
  readonly #deps: GroupGateDeps;
  readonly #stop: () => void;
  #book: GroupBook | undefined;
  /** What claims say, by username: looked up at every call of a person. */
  #people = new Map<string, ClaimRecord>();
  #roles: readonly PlacedRoles[] = [];
  #rolesMark = "";
  /** When the latest token of a person was issued that came here; the store hears of it a moment later. */
  readonly #latestMs = new LRUCache<string, number>(atMost(TOKENS_KEPT));
  /** Usernames of the notes that are on their way. */
  readonly #noting = new Set<string>();
  readonly #homes = new Map<string, string>();
  #lookedMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;
  /** The last read; the next one begins after it, so that no older copy comes last. */
  #reading: Promise<void> = Promise.resolve();

  constructor(deps: GroupGateDeps) {
    this.#deps = deps;
    this.#stop = deps.clock.every(LOOK_INTERVAL_MS, () => void this.look());
  }

  /** Changes with the roles; empty while the store does not answer. */
  get mark(): string {
    return this.#deps.clock.steadyMs() - this.#lookedMs <= LOOK_LIFE_MS ? this.#rolesMark : "";
  }

  /** All groups with their roles, by name. */
  get roles(): readonly PlacedRoles[] {
    return this.#roles;
  }

  /** All groups, by name. */
  get groups(): readonly Group[] {
    return this.#book?.groups ?? [];
  }

  /** True for a group that there is. */
  has(name: string): boolean {
    return this.groups.some((group) => group.name === name);
  }

  /** The user's roles at this moment, by group. */
  rolesOf(user: string): OwnRole[] {
    return this.#roles.flatMap((group) => {
      const role = this.#roleIn(group, user);
      return role === undefined ? [] : [{ name: group.name, role }];
    });
  }

  /** The user's role in a group at this moment; undefined for none. */
  roleOf(user: string, name: string): GroupRole | undefined {
    const group = this.#roles.find((one) => one.name === name);
    return group === undefined ? undefined : this.#roleIn(group, user);
  }

  /** Changes the groups and knows it at once. Throws BAD_ARGUMENT, OVERLOADED, and the store's errors. */
  async change(change: GroupChange): Promise<Group | undefined> {
    const before = await this.#deps.directory.changeGroups(change);
    await this.#read();
    return before;
  }

  /** Remembers which node a group's root was given to. */
  placed(name: string, fsId: string): void {
    if (this.#homes.get(name) === fsId) return;
    this.#homes.set(name, fsId);
    this.#show();
  }

  /**
   * Takes in what a person's token says of the groups. An older token changes nothing. Rejects never: without
   * the store the next call says it again.
   */
  async heard({ identity, groups, issuedAtWallMs }: VerifiedToken): Promise<void> {
    if (groups === undefined || this.#book === undefined) return;
    const { username } = identity;
    const nowMs = Math.trunc(this.#deps.clock.wallMs());
    // Tokens tell the second of their issue, so that one without a time is no younger than others of its second.
    const issuedMs = issuedAtWallMs ?? Math.floor(nowMs / 1_000) * 1_000;
    const latestMs = this.#latestMs.get(username) ?? issuedMs;
    if (issuedMs < latestMs) return;
    this.#latestMs.set(username, issuedMs);
    const wanted = new Set(this.groups.flatMap(({ claims }) => claims.map(({ value }) => value)));
    const values = groups.filter((value) => wanted.has(value));
    const known = this.#people.get(username);
    const record: ClaimRecord = { username, issuedMs, seenMs: nowMs, values };
    if (issuedMs < (known?.issuedMs ?? issuedMs)) return;
    if (saysNothingNew(known, record)) {
      if (issuedAtWallMs !== undefined && issuedMs !== known?.issuedMs)
        void this.#note({ ...record, seenMs: known?.seenMs ?? nowMs });
      return;
    }
    try {
      await this.change({ kind: "person", record });
      this.#deps.log.info("group_claims_changed", { user: username, values: values.length });
    } catch (error) {
      this.#deps.log.warn("group_claims_not_kept", { user: username, error: errorText(error) });
    }
  }

  /**
   * Stores the issue of a later token that said nothing new, for this MetaServer after a restart and for the others:
   * an older token changes nothing there. Nobody waits for it, and nodes need not hear. Never rejects.
   */
  async #note(record: ClaimRecord): Promise<void> {
    const { username } = record;
    if (this.#noting.size >= NOTES_AT_ONCE || this.#noting.has(username)) return;
    this.#noting.add(username);
    try {
      await this.#deps.directory.changeGroups({ kind: "person", record });
      this.#people.set(username, record);
    } catch (error) {
      this.#deps.log.debug("group_token_not_noted", { user: username, error: errorText(error) });
    } finally {
      this.#noting.delete(username);
    }
  }

  /** Reads the groups where they have changed. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((error: unknown) => this.#deps.log.debug("groups_not_read", { error: errorText(error) }))
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  /** Stops the checks. */
  stop(): void {
    this.#stop();
  }

  async #look(): Promise<void> {
    const startedMs = this.#deps.clock.steadyMs();
    const mark = await this.#deps.directory.groupsMark();
    if (this.#book === undefined || mark !== this.#book.mark) await this.#read();
    this.#lookedMs = startedMs;
  }

  #read(): Promise<void> {
    const read = this.#reading.then(() => this.#readOnce());
    this.#reading = read.catch(() => undefined);
    return read;
  }

  async #readOnce(): Promise<void> {
    const { directory } = this.#deps;
    const book = await directory.groupBook();
    for (const { name } of book.groups) {
      if (this.#homes.has(name)) continue;
      const root = await directory.findRoot(groupPrincipal(name));
      if (root !== undefined) this.#homes.set(name, root.fsId);
    }
    this.#book = book;
    this.#people = new Map(book.people.map((person) => [person.username, person]));
    this.#show();
  }

  #show(): void {
    if (this.#book === undefined) return;
    const withClaims = this.#deps.groupsClaim !== undefined;
    this.#roles = rolesOfGroups(this.#book, { withClaims }).map((group) => ({
      ...group,
      fsId: this.#homes.get(group.name) ?? "",
    }));
    this.#rolesMark = hash("sha256", JSON.stringify(this.#roles), "hex");
  }

  #roleIn({ roles }: GroupRoles, user: string): GroupRole | undefined {
    const { clock, userStates } = this.#deps;
    const nowMs = clock.wallMs();
    const own = roles.filter(
      ({ username, untilMs, setAtMs }) =>
        username === user &&
        (untilMs === 0 || nowMs < untilMs) &&
        !userStates.states.isGoneSince(username, setAtMs, nowMs),
    );
    return own.map(({ role }) => role).reduce<GroupRole | undefined>(strongest, undefined);
  }
}

function strongest(one: GroupRole | undefined, other: GroupRole): GroupRole {
  return one === undefined ? other : strongerRole(one, other);
}

/** True for a token with the values of the one before on the same day. */
function saysNothingNew(known: ClaimRecord | undefined, { seenMs, values }: ClaimRecord): boolean {
  if (values.length === 0) return (known?.values ?? []).length === 0;
  return (
    known !== undefined &&
    JSON.stringify(values) === JSON.stringify(known.values) &&
    seenMs - known.seenMs < SEEN_EVERY_MS
  );
}
