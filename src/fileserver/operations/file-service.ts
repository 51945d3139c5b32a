// Assembles the FileServer's operations: policy, quota, storage, telemetry, in that order, once.
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { ADMIN_HASH_FAILURE_WINDOW_MS } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";
import { QuotaLedger } from "#quota/ledger.ts";
import type { QuotaStore } from "#quota/quota-store.ts";
import type { AdminPassword } from "#security/identity/admin-password.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import type { UserStateStore } from "#security/identity/user-state-store.ts";
import type { Heir } from "#security/policy/decide.ts";
import type { SessionTable } from "#security/sessions/session-table.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import { Access } from "./access.ts";
import { Changes } from "./changes.ts";
import { ContentOperations } from "./content-operations.ts";
import { CopyOperations } from "./copy-operations.ts";
import type { DownloadDeps } from "./download.ts";
import { StallWatch } from "./download-pump.ts";
import { ExplainOperations } from "./explain-operations.ts";
import { LargeReads } from "./large-reads.ts";
import { type NamespaceDeps, NamespaceOperations } from "./namespace-operations.ts";
import { OperationMeter } from "./operation-meter.ts";
import type { OperatorLooks } from "./operator-looks.ts";
import { OperatorTrash } from "./operator-trash.ts";
import { QuotaOperations } from "./quota-operations.ts";
import { RemovedUserReaper, type RemovedUserReaperDeps } from "./removed-user-reaper.ts";
import { ResumableOperations } from "./resumable-operations.ts";
import { type ClaimRoot, RootProvisioner } from "./root-provisioner.ts";
import { RootUsage } from "./root-usage.ts";
import { DEFAULT_SERVICE_LIMITS, type ServiceLimits } from "./service-limits.ts";
import type { ServingState } from "./serving-state.ts";
import { SessionOperations } from "./session-operations.ts";
import { ShareOperations } from "./share-operations.ts";
import { StreamSlots } from "./stream-slots.ts";
import { TrashOperations } from "./trash-operations.ts";
import { TrashReaper } from "./trash-reaper.ts";
import type { UploadDeps } from "./upload.ts";
import { UploadLease } from "./upload-lease.ts";
import { UploadWatch } from "./upload-watch.ts";
import { type UserDeps, UserOperations } from "./user-operations.ts";

/** Dependencies of the service. */
export interface FileServiceDeps {
  readonly storage: Storage;
  readonly quotas: QuotaStore;
  readonly sessions: SessionTable;
  readonly state: ServingState;
  readonly verifier: TokenVerifier;
  readonly admit: (identity: VerifiedIdentity) => Promise<void>;
  readonly userStates: UserStateStore;
  readonly personOf: UserDeps["personOf"];
  readonly onUserDecided?: UserDeps["onDecided"];
  readonly knowsCluster?: RemovedUserReaperDeps["knowsCluster"];
  /** Undefined on a node that stands alone. */
  readonly claimRoot: ClaimRoot | undefined;
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
  readonly quotas: QuotaOperations;
  readonly users: UserOperations;
  readonly shares: ShareOperations;
  readonly explanations: ExplainOperations;
  readonly uploads: UploadDeps;
  readonly resumable: ResumableOperations;
  readonly copies: CopyOperations;
  readonly downloads: DownloadDeps;
  readonly sessionTable: SessionTable;
  readonly state: ServingState;
  readonly usage: RootUsage;
  readonly ledger: QuotaLedger;
  readonly trashReaper: TrashReaper;
  readonly removals: RemovedUserReaper;
  readonly meter: OperationMeter;
  /** Stops all timers. */
  stop(): Promise<void>;
}

/** Assembles the operations over what the process has opened. */
export function createFileService(deps: FileServiceDeps): FileService {
  const { storage, telemetry, clock, log, adminUsername } = deps;
  const limits: ServiceLimits = { ...DEFAULT_SERVICE_LIMITS, ...deps.limits };
  const usage = new RootUsage(storage.roots());
  const ledger = ledgerOver(deps);
  const roots = new RootProvisioner({
    storage,
    usage,
    claimRoot: deps.claimRoot,
    clock,
    random: deps.random,
    onLostReplaced: (subject) => deps.audit({ act: "root.replaced", actor: "node", subject }),
    ...(deps.onRootMade === undefined ? {} : { onRootMade: deps.onRootMade }),
  });
  const homeAddressOf = (username: string): string | undefined => roots.homeAddressOf(username);
  const closesShares = (owner: string): boolean => deps.userStates.states.closesShares(owner, clock.wallMs());
  const heirOf = (owner: string, username: string): Heir | undefined => {
    const handOver = deps.userStates.states.handOverTo(username, owner, clock.wallMs());
    return handOver === undefined ? undefined : { username, mayDelete: handOver.mayDelete };
  };
  const access = new Access({ storage, adminUsername, homeAddressOf, closesShares, heirOf });
  const meter = new OperationMeter({ telemetry, clock });
  const changes = new Changes({ ledger, usage, audit: deps.audit });
  const stalls = new StallWatch(clock);
  const watch = new UploadWatch(clock);
  const reaper = reaperOver(deps, { changes, usage });
  const removals = new RemovedUserReaper({
    ...deps,
    userStates: deps.userStates,
    looks: deps.operatorLooks,
    changes,
  });
  const names = { storage, access, changes, meter, clock, audit: deps.audit };
  const reads = { storage, access, meter, telemetry, log };
  const turns = new UploadLease();
  const core = { storage, access, ledger, usage, meter, audit: deps.audit, log };
  const resumable = new ResumableOperations({ ...core, turns, clock, random: deps.random });
  const slots = () => new StreamSlots(limits.streamsPerUser);
  const accounts = accountOperations(deps, { access, roots, usage, limits, resumable, removals });
  const trash = { ...names, retentionMs: deps.trashRetentionMs, looks: deps.operatorLooks };
  return {
    ...nameOperations(deps, names),
    trash: new TrashOperations(trash),
    operatorTrash: new OperatorTrash({ ...trash, rights: accounts.quotas, log }),
    content: new ContentOperations({ ...reads, changes }),
    explanations: new ExplainOperations({ storage, access, ledger, meter, clock }),
    ...accounts,
    uploads: { ...core, quotas: deps.quotas, telemetry, slots: slots(), watch, turns, resumable },
    resumable,
    downloads: { ...reads, slots: slots(), stalls, largeReads: new LargeReads() },
    sessionTable: deps.sessions,
    state: deps.state,
    usage,
    ledger,
    meter,
    trashReaper: reaper,
    removals,
    async stop() {
      stalls.stop();
      watch.stop();
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
): Pick<FileService, "sessions" | "quotas" | "users"> {
  const { storage, clock, log, quotas, adminUsername, adminPassword, onSecurityEvent } = deps;
  const { access, roots, usage, limits, resumable } = parts;
  const userStates = deps.userStates;
  const quotaOperations = new QuotaOperations({
    storage,
    access,
    quotas,
    usage,
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
  return {
    sessions: new SessionOperations({
      sessions: deps.sessions,
      verifier: deps.verifier,
      admit: deps.admit,
      users: {
        requireEntry(entrant, issuedAtWallMs) {
          userStates.states.requireEntry(entrant, issuedAtWallMs);
          parts.removals.requireClear(entrant.username);
        },
      },
      roots,
      signIns: new SlidingWindow(clock, { count: limits.registerPerMinute, windowMs: 60_000 }),
      refusedSignIns: new SlidingWindow(clock, { count: limits.registerPerMinute, windowMs: 60_000 }),
      audit: deps.audit,
      log,
    }),
    quotas: quotaOperations,
    users: new UserOperations({
      userStates,
      sessions: deps.sessions,
      resumable,
      adminOf: (credential) => quotaOperations.adminOf(credential),
      personOf: deps.personOf,
      onDecided: deps.onUserDecided,
      clock,
      audit: deps.audit,
      log,
    }),
  };
}
