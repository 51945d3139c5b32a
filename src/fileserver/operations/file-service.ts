// Assembles the FileServer's operations: policy, quota, storage, telemetry, in that order, once.
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { ADMIN_HASH_FAILURE_WINDOW_MS } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import { allSessions } from "#fileserver/doors/all-sessions.ts";
import type { DoorPeers } from "#fileserver/doors/door-peer.ts";
import type { DoorSessions } from "#fileserver/doors/door-sessions.ts";
import { DoorSignIn } from "#fileserver/doors/door-sign-in.ts";
import { LinkGate } from "#fileserver/doors/link-gate.ts";
import { LinkSessions } from "#fileserver/doors/link-sessions.ts";
import { LinkSignIn } from "#fileserver/doors/link-sign-in.ts";
import type { TicketNews } from "#fileserver/doors/ticket-news.ts";
import { StallWatch } from "#fileserver/transfers/download-pump.ts";
import { LargeReads } from "#fileserver/transfers/large-reads.ts";
import { StreamSlots } from "#fileserver/transfers/stream-slots.ts";
import { UploadLease } from "#fileserver/transfers/upload-lease.ts";
import { QuotaLedger } from "#quota/ledger.ts";
import type { QuotaStore } from "#quota/quota-store.ts";
import type { AdminPassword } from "#security/identity/admin-password.ts";
import type { KnownGroups } from "#security/identity/known-groups.ts";
import { LinkPasswords } from "#security/identity/link-password.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import type { UserStateStore } from "#security/identity/user-state-store.ts";
import { type Heir, heirByGroup, memberOf, strongestHeir } from "#security/policy/decide.ts";
import { groupNameOf, groupPrincipal } from "#security/policy/group.ts";
import { RefusedSignIns } from "#security/sessions/refused-sign-ins.ts";
import type { SessionTable } from "#security/sessions/session-table.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import { AbandonedStreams } from "./abandoned-streams.ts";
import { Access } from "./access.ts";
import type { CallerTables } from "./caller.ts";
import { Changes } from "./changes.ts";
import { ContentOperations } from "./content-operations.ts";
import { CopyOperations } from "./copy-operations.ts";
import type { DownloadDeps } from "./download.ts";
import { ExplainOperations } from "./explain-operations.ts";
import { LinkOperations } from "./link-operations.ts";
import { LockOperations } from "./lock-operations.ts";
import { type HasEnded, LockRule } from "./lock-rule.ts";
import { type MovingRoots, movingPlaces } from "./moving-roots.ts";
import { type NamespaceDeps, NamespaceOperations } from "./namespace-operations.ts";
import { OperationMeter } from "./operation-meter.ts";
import type { OperatorLooks } from "./operator-looks.ts";
import { OperatorTrash } from "./operator-trash.ts";
import { PropertyOperations } from "./property-operations.ts";
import { QuotaOperations } from "./quota-operations.ts";
import { RemovedUserReaper, type RemovedUserReaperDeps } from "./removed-user-reaper.ts";
import { ResumableOperations } from "./resumable-operations.ts";
import { type ClaimRoot, RootProvisioner } from "./root-provisioner.ts";
import { RootUsage } from "./root-usage.ts";
import { DEFAULT_SERVICE_LIMITS, type ServiceLimits } from "./service-limits.ts";
import type { ServingState } from "./serving-state.ts";
import { type SessionDeps, SessionOperations } from "./session-operations.ts";
import { ShareOperations } from "./share-operations.ts";
import { TrashOperations } from "./trash-operations.ts";
import { TrashReaper } from "./trash-reaper.ts";
import type { UploadDeps } from "./upload.ts";
import { type UserDeps, UserOperations } from "./user-operations.ts";

/** Dependencies of the service. */
export interface FileServiceDeps {
  readonly storage: Storage;
  readonly quotas: QuotaStore;
  readonly sessions: SessionTable;
  readonly state: ServingState;
  readonly verifier: TokenVerifier;
  readonly admit: (identity: VerifiedIdentity) => Promise<void>;
  readonly doors: DoorSessions;
  readonly doorPeers: DoorPeers;
  /** Undefined on a node that stands alone. */
  readonly ticketNews: TicketNews | undefined;
  readonly nodeId: string;
  /** True where nothing is proven (spec 5.7). */
  readonly mock: boolean;
  readonly userStates: UserStateStore;
  readonly groups: Pick<KnownGroups, "has" | "roleOf" | "rolesOf">;
  readonly personOf: UserDeps["personOf"];
  readonly onUserDecided?: UserDeps["onDecided"];
  readonly knowsCluster?: RemovedUserReaperDeps["knowsCluster"];
  /** Undefined on a node that stands alone. */
  readonly claimRoot: ClaimRoot | undefined;
  /** Roots on their way to other nodes; undefined on a node that stands alone. */
  readonly moves?: MovingRoots | undefined;
  readonly adminUsername: string | undefined;
  readonly adminPassword: AdminPassword | undefined;
  readonly telemetry: NodeTelemetry;
  /** Free bytes of the data folder's filesystem, now. */
  readonly freeBytes: () => bigint;
  readonly reserveBytes: bigint;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly onSecurityEvent: SecurityEventSink;
  readonly audit: AuditSink;
  /** How long the trash keeps items, in milliseconds; 0 means until space is needed (D14). */
  readonly trashRetentionMs: number;
  readonly operatorLooks: OperatorLooks;
  readonly onRootMade?: (owner: string) => void;
  /** Resolves when the MetaServer has acknowledged a root's shares, or its time is over; never rejects. */
  readonly sharesTold?: (owner: string) => Promise<void>;
  readonly limits?: Partial<ServiceLimits>;
}

/** Everything that the routes need. */
export interface FileService {
  readonly namespace: NamespaceOperations;
  readonly content: ContentOperations;
  readonly trash: TrashOperations;
  readonly operatorTrash: OperatorTrash;
  readonly sessions: SessionOperations;
  readonly doorSignIn: DoorSignIn;
  readonly callers: CallerTables;
  readonly quotas: QuotaOperations;
  readonly users: UserOperations;
  readonly shares: ShareOperations;
  readonly locks: LockOperations;
  readonly links: LinkOperations;
  readonly linkSignIn: LinkSignIn;
  readonly properties: PropertyOperations;
  readonly explanations: ExplainOperations;
  readonly uploads: UploadDeps;
  readonly resumable: ResumableOperations;
  readonly copies: CopyOperations;
  readonly downloads: DownloadDeps;
  readonly state: ServingState;
  readonly usage: RootUsage;
  readonly ledger: QuotaLedger;
  readonly trashReaper: TrashReaper;
  readonly removals: RemovedUserReaper;
  readonly meter: OperationMeter;
  /** Makes a group's root where it was given to this node and is missing. */
  ensureGroupRoot(owner: string, isNews: boolean): Promise<void>;
  /** Stops all timers. */
  stop(): Promise<void>;
}

/** Assembles the operations over what the process has opened. */
export function createFileService(deps: FileServiceDeps): FileService {
  const { storage, telemetry, clock, log } = deps;
  const limits: ServiceLimits = { ...DEFAULT_SERVICE_LIMITS, ...deps.limits };
  const usage = RootUsage.of(storage);
  const ledger = ledgerOver(deps);
  const roots = new RootProvisioner({
    storage,
    usage,
    claimRoot: deps.claimRoot,
    clock,
    random: deps.random,
    onDepartedAsked: ({ owner, target }) => deps.log.warn("root_left_before", { user: owner, to: target }),
    onLostReplaced: (subject) => deps.audit({ act: "root.replaced", actor: "node", subject }),
    ...(deps.onRootMade === undefined ? {} : { onRootMade: deps.onRootMade }),
  });
  const gate = gateOver(deps);
  const visits = new LinkSessions({ gate, clock, random: deps.random });
  const access = accessOver(deps, roots, gate);
  const meter = new OperationMeter({ telemetry, clock });
  const changes = new Changes({ ledger, usage, audit: deps.audit });
  const stalls = new StallWatch(clock);
  const abandoned = new AbandonedStreams(clock);
  const reaper = reaperOver(deps, { changes, usage });
  const removals = new RemovedUserReaper({
    ...deps,
    userStates: deps.userStates,
    looks: deps.operatorLooks,
    changes,
  });
  const hasEnded: HasEnded = (credential, username, ticketIssuedMs) =>
    deps.ticketNews?.isEnded({ credential, username, ticketIssuedMs }) === true;
  const locks = new LockRule(storage.locks, access, hasEnded);
  const names = { storage, access, locks, changes, meter, clock, audit: deps.audit };
  const reads = { storage, access, meter, telemetry, log };
  const turns = new UploadLease();
  const core = { storage, access, locks, ledger, usage, meter, audit: deps.audit, log };
  const resumable = new ResumableOperations({ ...core, turns, clock, random: deps.random });
  const slots = () => new StreamSlots(limits.streamsPerUser);
  const accounts = accountOperations(deps, { access, roots, usage, limits, resumable, removals });
  const trash = { ...names, retentionMs: deps.trashRetentionMs, looks: deps.operatorLooks };
  return {
    ...nameOperations(deps, names),
    trash: new TrashOperations(trash),
    operatorTrash: new OperatorTrash({ ...trash, rights: accounts.quotas, log }),
    content: new ContentOperations({ ...reads, locks, changes }),
    locks: new LockOperations({ ...names, locks: storage.locks, rule: locks }),
    ...linkOperations(deps, { access, meter, gate, visits }),
    properties: new PropertyOperations({ properties: storage.properties, access, locks, changes, meter }),
    explanations: new ExplainOperations({ storage, access, locks, ledger, meter, clock }),
    ...accounts,
    uploads: { ...core, quotas: deps.quotas, telemetry, slots: slots(), abandoned, turns, resumable },
    resumable,
    downloads: { ...reads, slots: slots(), stalls, abandoned, largeReads: new LargeReads() },
    callers: { sessions: deps.sessions, doors: deps.doors, visits, peers: deps.doorPeers },
    state: deps.state,
    usage,
    ledger,
    meter,
    trashReaper: reaper,
    removals,
    ensureGroupRoot: (owner, isNews) => roots.ensureGroupRoot(owner, isNews),
    async stop() {
      stalls.stop();
      visits.stop();
      abandoned.stop();
      resumable.stop();
      await Promise.all([reaper.stop(), removals.stop()]);
    },
  };
}

function ledgerOver({ quotas, freeBytes, reserveBytes }: FileServiceDeps): QuotaLedger {
  return new QuotaLedger({
    quotaBytes: (owner) => quotas.quotaBytes(owner),
    inodeLimit: (owner) => quotas.inodeLimit(owner),
    freeBytes,
    reserveBytes,
  });
}

/** The operations on whole files and folders. */
function nameOperations(
  deps: FileServiceDeps,
  names: NamespaceDeps,
): Pick<FileService, "copies" | "namespace" | "shares"> {
  return {
    namespace: new NamespaceOperations(names),
    copies: new CopyOperations(names),
    shares: new ShareOperations({
      ...names,
      told: deps.sharesTold ?? (() => Promise.resolve()),
      isRetired: (username) => deps.userStates.states.isRetired(username),
    }),
  };
}

/** Links: what owners make of them, and how visitors come in. */
function linkOperations(
  deps: FileServiceDeps,
  parts: { access: Access; meter: OperationMeter; gate: LinkGate; visits: LinkSessions },
): Pick<FileService, "linkSignIn" | "links"> {
  const { links, locks } = deps.storage;
  const passwords = new LinkPasswords();
  return {
    links: new LinkOperations({ ...deps, ...parts, links, locks, passwords }),
    linkSignIn: new LinkSignIn({ ...deps, ...parts, passwords }),
  };
}

function reaperOver(
  deps: FileServiceDeps,
  parts: { readonly changes: Changes; readonly usage: RootUsage },
): TrashReaper {
  const { storage, clock, log, audit, freeBytes, reserveBytes, trashRetentionMs } = deps;
  return new TrashReaper({
    ...parts,
    storage,
    clock,
    log,
    audit,
    freeBytes,
    reserveBytes,
    retentionMs: trashRetentionMs,
    quotaBytes: (owner) => deps.quotas.quotaBytes(owner),
  });
}

interface AccountParts {
  readonly access: Access;
  readonly roots: RootProvisioner;
  readonly usage: RootUsage;
  readonly limits: ServiceLimits;
  readonly resumable: ResumableOperations;
  readonly removals: RemovedUserReaper;
}

/** Sessions and quotas: operations on users, not on files. */
function accountOperations(
  deps: FileServiceDeps,
  parts: AccountParts,
): Pick<FileService, "doorSignIn" | "sessions" | "quotas" | "users"> {
  const { storage, clock, log, quotas, adminUsername, adminPassword, onSecurityEvent } = deps;
  const { access, roots, usage, limits, resumable } = parts;
  const userStates = deps.userStates;
  const quotaOperations = new QuotaOperations({
    storage,
    access,
    quotas,
    usage,
    ensureGroupRoot: (owner) => roots.ensureGroupRoot(owner, true),
    isFrozen: movingPlaces(deps.moves).isFrozen,
    adminUsername,
    adminPassword,
    passwordFailures: new SlidingWindow(clock, {
      count: limits.passwordFailuresPerWindow,
      windowMs: ADMIN_HASH_FAILURE_WINDOW_MS,
    }),
    onSecurityEvent,
    audit: deps.audit,
    log,
  });
  const users: SessionDeps["users"] = {
    requireEntry(entrant, made) {
      userStates.states.requireEntry(entrant, made);
      parts.removals.requireClear(entrant.username);
    },
  };
  return {
    doorSignIn: new DoorSignIn({ ...deps, news: deps.ticketNews, users, roots }),
    sessions: new SessionOperations({
      sessions: deps.sessions,
      doorTable: deps.doors.table,
      verifier: deps.verifier,
      admit: deps.admit,
      users,
      roots,
      signIns: new SlidingWindow(clock, { count: limits.registerPerMinute, windowMs: 60_000 }),
      refusedSignIns: new SlidingWindow(clock, { count: limits.registerPerMinute, windowMs: 60_000 }),
      refusals: new RefusedSignIns(deps),
      audit: deps.audit,
      log,
    }),
    quotas: quotaOperations,
    users: new UserOperations({
      userStates,
      sessions: allSessions(deps.sessions, deps.doors.table),
      resumable,
      adminOf: (credential) => quotaOperations.adminOf(credential),
      groups: deps.groups,
      personOf: deps.personOf,
      onDecided: deps.onUserDecided,
      clock,
      audit: deps.audit,
      log,
    }),
  };
}

/** Access to roots as moves, hand-overs and locked-out owners leave it. */
function accessOver(deps: FileServiceDeps, roots: RootProvisioner, gate: LinkGate): Access {
  const { storage, moves, adminUsername } = deps;
  const homeAddressOf = (username: string): string | undefined =>
    moves?.addressOf(username) ?? roots.homeAddressOf(username);
  const places = movingPlaces(moves);
  const heirOf = (owner: string, username: string): Heir | undefined => heirIn(deps, owner, username);
  return new Access({
    storage,
    adminUsername,
    homeAddressOf,
    closesShares: (owner) => closesShares(deps, owner),
    heirOf,
    linkGoesOn: (link) => gate.goesOn(link),
    ...places,
  });
}

/** The gate of links over what is known of owners and groups. */
function gateOver(deps: FileServiceDeps): LinkGate {
  const { storage, userStates, clock } = deps;
  const users = () => userStates.states;
  return new LinkGate({
    links: storage.links,
    users,
    closesShares: (owner) => closesShares(deps, owner),
    clock,
  });
}

/** True for an owner whose shares an administrator has closed, and for a group that is deleted. */
function closesShares({ userStates, groups, clock }: FileServiceDeps, owner: string): boolean {
  const group = groupNameOf(owner);
  if (group !== undefined && !groups.has(group)) return true;
  return userStates.states.closesShares(owner, clock.wallMs());
}

/** The user as a member of the root's group, or by a handing over to the user or to a group of theirs. */
function heirIn(
  { userStates: { states }, groups, clock }: FileServiceDeps,
  owner: string,
  username: string,
): Heir | undefined {
  const nowMs = clock.wallMs();
  const group = groupNameOf(owner);
  const role = group === undefined ? undefined : groups.roleOf(username, group);
  const member = group !== undefined && role !== undefined ? memberOf(username, group, role) : undefined;
  // No handing over gives more.
  if (member?.mayDelete === true) return member;
  const handOver = states.handOverTo(username, owner, nowMs);
  const own = handOver && { username, mayDelete: handOver.mayDelete };
  if (own?.mayDelete === true) return own;
  const byGroups = groups.rolesOf(username).map((of) => {
    const toGroup = states.handOverTo(groupPrincipal(of.name), owner, nowMs);
    return toGroup && heirByGroup(memberOf(username, of.name, of.role), toGroup);
  });
  return strongestHeir([member, own, ...byGroups].filter((heir) => heir !== undefined));
}
