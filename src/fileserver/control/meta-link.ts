// The node's side of the control plane: registers, beats, claims roots, stops when it loses its id (D19).
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Clock } from "#base/clock.ts";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { HEARTBEAT_INTERVAL_MS, NODE_LEASE_MS } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { withoutRequest } from "#base/request-scope.ts";
import { requireNeighbour, VERSION } from "#base/version.ts";
import type { RootClaim } from "#fileserver/operations/root-provisioner.ts";
import type { Client } from "#wire/grpc/client.ts";
import type {
  ClaimRootRequestSchema,
  MetaServer,
  RegisterFileServerRequestSchema,
  RegisterFileServerResponse,
} from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { heldOff, lostRoot, unreachable } from "./claim-refusals.ts";
import { reasonOf } from "./refusal-reason.ts";
import { registrationPages, withPerson } from "./registration-pages.ts";
import type { RestoredFrom } from "./restored-from.ts";
import type { RootList, ShareReplicator } from "./share-replicator.ts";
import { UserUpdates, type UserUpdatesDeps } from "./user-updates.ts";

/** Free and total bytes of the data folder's filesystem. */
export interface DiskSpace {
  readonly totalBytes: bigint;
  readonly freeBytes: bigint;
}

/** The node's identity, as the MetaServer knows it (D19). */
export interface NodeFacts {
  readonly id: string;
  readonly name: string;
  /** host:port that clients are sent to. */
  readonly address: string;
  /** Of this process; new at each start. */
  readonly instanceId: string;
  /** Of the data folder; lasting. */
  readonly dataId: string;
  readonly reserveBytes: bigint;
  /** Set where the roots lie in the shared engine, and not on this node's disks. */
  readonly onEngine?: boolean;
}

/** The person behind an e-mail address, by the identity provider's issuer and subject (D21). */
export interface Person {
  readonly issuer: string;
  readonly subject: string;
}

/** Stores the cluster that a data folder belongs to. */
export interface ClusterMemory {
  readonly clusterId: string;
  /** The process that registered from this folder last; empty for none. */
  readonly lastProcess: string;
  /** The restore that the folder came from; undefined for one that was not restored. */
  readonly restored?: RestoredFrom | undefined;
  remember(clusterId: string): Promise<void>;
  /** Remembers that a process has registered. */
  registered(instanceId: string): Promise<void>;
}

/** Dependencies of the link. */
export interface MetaLinkDeps {
  readonly client: Client<typeof MetaServer>;
  readonly node: NodeFacts;
  readonly cluster: ClusterMemory;
  readonly shares: ShareReplicator;
  readonly rootCount: () => number;
  /** The person known as a root's owner (D21); undefined when unknown. */
  readonly subjectOf: (owner: string) => (Person & { readonly version?: bigint }) | undefined;
  /** Applies an operator's rebinding of addresses (D21); left out to ask for none. */
  readonly onRebound?: UserUpdatesDeps["onRebound"];
  /** Administrators' decisions about users; left out, the node takes no part in their exchange. */
  readonly userStates?: UserUpdatesDeps["userStates"];
  /** Hears of groups; left out, the node knows none. */
  readonly groups?: UserUpdatesDeps["groups"];
  readonly diskSpace: () => DiskSpace;
  readonly isDraining: () => boolean;
  /** Called once when another process holds this node's id: stop serving, and do not register again. */
  readonly onFenced: (reason: string) => void;
  readonly clock: Clock;
  /** Between 0 and 1. */
  readonly random: () => number;
  readonly log: Logger;
}

/** A call may take no longer than the time between two heartbeats. */
const CALL_TIMEOUT_MS = HEARTBEAT_INTERVAL_MS;
/** A registration brings everything, and a store that lacks it takes it all in. */
const REGISTER_TIMEOUT_MS = 4 * HEARTBEAT_INTERVAL_MS;
/** Attempts per page: the first may return the epoch of another process before, more follow a lost page. */
const REGISTER_ATTEMPTS = 3;
/** Attempts to claim a root while registrations of this process end the epoch of each. */
const CLAIM_ATTEMPTS = 5;
/** Largest difference of the two clocks at which a node deletes by its own. */
const CLOCK_SKEW_MAX_MS = 60 * 60_000;
/** The part of the interval that is random, so that nodes started together do not beat together. */
const JITTER = 0.1;

/** Refusals that need an operator. */
const LASTING: readonly ErrorCode[] = [
  "NODE_ID_HELD",
  "CLUSTER_MISMATCH",
  "CLIENT_CERT_REQUIRED",
  "VERSION_MISMATCH",
];
const WAITS = `it waits until that one's lease ends, at most ${NODE_LEASE_MS / 1_000} s after that one has stopped: until then it serves the roots that it has, and takes no new users`;

/** The link to the MetaServer. Without it the node serves the roots it has; only new users need it. */
export class MetaLink {
  readonly #deps: MetaLinkDeps;
  readonly #words: UserUpdates;
  #epoch: bigint | undefined;
  /** The last epoch of this node that a MetaServer has named, of any process. */
  #knownEpoch = 0n;
  #isRegistrationDue = false;
  /** Registrations of this process that had pages. */
  #pagedRegistrations = 0n;
  #intervalMs = HEARTBEAT_INTERVAL_MS;
  #isRunning = false;
  #cancelTimer: (() => void) | undefined;
  #beating: Promise<void> = Promise.resolve();
  #lastFailure: string | undefined;
  #refusal: string | undefined;
  #isHeldOff = false;
  #isFenced = false;
  #clockSkewMs: number | null = null;

  constructor(deps: MetaLinkDeps) {
    this.#deps = deps;
    const { client, node, onRebound, userStates, groups, log } = deps;
    const [fsId, timeoutMs] = [node.id, CALL_TIMEOUT_MS];
    this.#words = new UserUpdates({ client, fsId, onRebound, userStates, groups, timeoutMs, log });
    deps.shares.onRefused = (error) => this.#noticeFence(error);
  }

  /** The epoch of this process; undefined before its first registration. */
  get epoch(): bigint | undefined {
    return this.#epoch;
  }

  /** True while the last contact went well. */
  get isRegistered(): boolean {
    return this.#epoch !== undefined && this.#lastFailure === undefined;
  }

  /** True while this node has all decisions about users, and its clock agrees with the MetaServer's. */
  get isUpToDate(): boolean {
    const skewMs = Math.abs(this.#clockSkewMs ?? Number.POSITIVE_INFINITY);
    return this.isRegistered && this.#words.hasUserStates && skewMs <= CLOCK_SKEW_MAX_MS;
  }

  /** Why the MetaServer refuses this node for good; undefined while it accepts the node or is away. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  /** The MetaServer's clock minus ours in milliseconds; null before the first answer. */
  get clockSkewMs(): number | null {
    return this.#clockSkewMs;
  }

  /** Registers and beats until stopped. Resolves when the first attempt has ended, well or not. */
  async start(): Promise<void> {
    this.#isRunning = true;
    await this.#beat();
  }

  /** Sends a heartbeat now, so that the MetaServer learns of a change at once. */
  async beatNow(): Promise<void> {
    this.#cancelTimer?.();
    await this.#beat();
  }

  /** Has the next heartbeat follow at once, or a registration of all roots, without waiting for it. */
  beatSoon(what?: "registration"): void {
    if (what !== undefined) this.#isRegistrationDue = true;
    if (this.#isRunning) void this.beatNow();
  }

  /** Ends the beating; resolves when none is under way. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#cancelTimer?.();
    await this.#beating;
    await this.#deps.shares.stop();
  }

  /** Resolves when the MetaServer has acknowledged a root's shares, or its time is over. Never rejects. */
  async sharesTold(owner: string): Promise<void> {
    await this.#deps.shares.told(owner);
  }

  /**
   * Where a user's root lives; the MetaServer assigns it when there is none (D19). Throws STORE_UNAVAILABLE
   * when the answer is unknown, and STARTING while a node that may hold it has not listed its roots. Throws
   * TOKEN_REJECTED when the address is another person's, and ROOT_LOST when a restore lost the root.
   */
  async claimRoot(
    user: Person & { readonly username: string },
    { isMissing = true }: { readonly isMissing?: boolean } = {},
  ): Promise<RootClaim> {
    const { node, cluster } = this.#deps;
    const { username, issuer, subject } = user;
    // The store takes the time of a restore as proof that the root is not here.
    const restoredAtMs = isMissing ? BigInt(Math.trunc(cluster.restored?.atMs ?? 0)) : 0n;
    const request = { username, issuer, subject, fsId: node.id, restoredAtMs, needsNumber: isMissing };
    for (let attempt = 1; ; attempt++) {
      if (this.#epoch === undefined) await this.beatNow();
      const epoch = this.#epoch;
      if (epoch === undefined) throw this.#isHeldOff ? heldOff(node.id) : unreachable(undefined);
      try {
        return await this.#claim({ ...request, epoch });
      } catch (error) {
        if (reasonOf(error) === "ROOT_LOST") {
          this.#deps.log.error("root_lost", { user: username });
          throw lostRoot(cluster.restored, error);
        }
        const isOvertaken = reasonOf(error) === "FENCED" && (await this.#hasRegisteredSince(epoch));
        if (!isOvertaken) this.#noticeFence(error);
        if (!isOvertaken || attempt === CLAIM_ATTEMPTS) throw unreachable(error);
      }
    }
  }

  async #claim(request: MessageInitShape<typeof ClaimRootRequestSchema>): Promise<RootClaim> {
    const { client, node } = this.#deps;
    const claim = await client.claimRoot(request, { timeoutMs: CALL_TIMEOUT_MS });
    const { rootId, fsId, address, replacesLost, rootNumber } = claim;
    return {
      rootId,
      isHere: fsId === node.id,
      address,
      ...(replacesLost ? { replacesLost } : {}),
      ...(rootNumber === 0 ? {} : { number: rootNumber }),
    };
  }

  /** True when this process's own registration ended an epoch; one without an answer is made again first. */
  async #hasRegisteredSince(epoch: bigint): Promise<boolean> {
    if (epoch !== this.#epoch) return true;
    if (!this.#isRegistrationDue) return false;
    await this.beatNow();
    return !this.#isFenced;
  }

  async #beat(): Promise<void> {
    // What it brings was decided elsewhere, and not by the request that has called for it.
    this.#beating = this.#beating.then(() => withoutRequest(() => this.#exchange()));
    await this.#beating;
    if (!this.#isRunning) return;
    const delayMs = this.#intervalMs * (1 + JITTER * (this.#deps.random() * 2 - 1));
    this.#cancelTimer?.();
    this.#cancelTimer = this.#deps.clock.after(delayMs, () => void this.#beat());
  }

  /** One heartbeat, or a registration where that is due. Never rejects. */
  async #exchange(): Promise<void> {
    const { log } = this.#deps;
    // An attempt begun before the fence must not register again.
    if (this.#isFenced) return;
    try {
      if (this.#epoch === undefined || this.#isRegistrationDue) await this.#register();
      else await this.#heartbeat(this.#epoch);
      if (this.#lastFailure !== undefined) log.info("metaserver_reached");
      this.#lastFailure = undefined;
      this.#refusal = undefined;
      this.#isHeldOff = false;
      this.#deps.shares.reached();
    } catch (error) {
      this.#deps.shares.lost();
      this.#noticeFence(error);
      const failure = errorText(error);
      const reason = reasonOf(error);
      this.#isHeldOff = reason === "NODE_ID_HELD";
      const told = this.#isHeldOff ? `${failure}; ${WAITS}` : failure;
      this.#refusal = reason !== undefined && LASTING.includes(reason) ? `${reason}: ${told}` : undefined;
      // One line for each new failure, not one every five seconds.
      if (failure !== this.#lastFailure) log.warn("metaserver_failed", { reason, error: told });
      this.#lastFailure = failure;
    }
  }

  async #heartbeat(epoch: bigint): Promise<void> {
    const { client, node, clock } = this.#deps;
    const answer = await client.heartbeat(
      {
        fsId: node.id,
        epoch,
        rootsVersion: BigInt(this.#deps.rootCount()),
        rootCount: BigInt(this.#deps.rootCount()),
        diskFree: this.#deps.diskSpace().freeBytes,
        draining: this.#deps.isDraining(),
        nowMs: BigInt(Math.trunc(clock.wallMs())),
        instanceId: node.instanceId,
        userStatesDigest: this.#words.userStatesDigest,
      },
      { timeoutMs: CALL_TIMEOUT_MS },
    );
    if (answer.nowMs > 0n) this.#clockSkewMs = Number(answer.nowMs) - Math.trunc(clock.wallMs());
    if (!answer.known || answer.sendFull) await this.#register();
    else await this.#words.hearNews(epoch, answer);
  }

  async #register(): Promise<void> {
    // Until the answer: it may have begun another epoch, and an older heartbeat would fence this process.
    this.#isRegistrationDue = true;
    const { cluster, shares, log } = this.#deps;
    const list = await shares.pause();
    const answer = await this.#sendRegistration(list);
    requireSameCluster(cluster.clusterId, answer.clusterId);
    if (cluster.clusterId === "" && answer.clusterId !== "") await cluster.remember(answer.clusterId);
    // A MetaServer of 0.1.0 refuses no other version by itself.
    requireNeighbour(
      { name: "the MetaServer", version: answer.serverVersion },
      `FileServer ${this.#deps.node.id}`,
    );
    this.#epoch = answer.epoch;
    this.#knownEpoch = answer.epoch;
    this.#isRegistrationDue = false;
    shares.registered(answer.epoch, list);
    await cluster
      .registered(this.#deps.node.instanceId)
      .catch((error: unknown) => log.warn("last_process_not_kept", { error: errorText(error) }));
    if (answer.heartbeatSeconds > 0) this.#intervalMs = answer.heartbeatSeconds * 1_000;
    await this.#words.hearAll(answer.epoch);
    log.info("registered", { cluster: answer.clusterId, epoch: answer.epoch, roots: this.#deps.rootCount() });
  }

  /**
   * Sends identity and roots in pages: each answer names the next page, so that a lost one is sent again.
   * When the epoch before must be named to replace it, that page is sent again too (M-02).
   */
  async #sendRegistration({ roots, departed, namesVersion }: RootList): Promise<RegisterFileServerResponse> {
    const { client, subjectOf } = this.#deps;
    const listed = roots.map((root) => withPerson(root, subjectOf(root.owner ?? "")));
    const pages = registrationPages(listed, departed);
    const last = pages.length - 1;
    const registration = last === 0 ? 0n : ++this.#pagedRegistrations;
    const head = this.#registrationHead();
    let page = 0;
    for (let asked = 0; asked < REGISTER_ATTEMPTS * pages.length; asked++) {
      const knownEpoch = this.#knownEpoch;
      const part = { ...pages[page], registration, page, more: page < last };
      const answer = await client.registerFileServer(
        { ...head, ...part, knownEpoch, namesVersion },
        { timeoutMs: REGISTER_TIMEOUT_MS },
      );
      if (answer.heldEpoch !== 0n) this.#knownEpoch = answer.heldEpoch;
      else if (answer.epoch === 0n) page = Math.min(answer.nextPage, last);
      // A MetaServer of 0.1.0 takes each page as a registration that adds to those before.
      else if (page < last) page++;
      else return answer;
    }
    throw new GroveError("STORE_UNAVAILABLE", "other processes register with this node's id all the time");
  }

  #registrationHead(): Omit<MessageInitShape<typeof RegisterFileServerRequestSchema>, "$typeName"> {
    const { node, cluster } = this.#deps;
    const disk = this.#deps.diskSpace();
    return {
      fsId: node.id,
      name: node.name,
      grpcAddr: node.address,
      version: VERSION,
      clusterId: cluster.clusterId,
      diskTotal: disk.totalBytes,
      diskFree: disk.freeBytes,
      diskReserve: node.reserveBytes,
      instanceId: node.instanceId,
      dataId: node.dataId,
      predecessorId: cluster.lastProcess,
      lastEpoch: this.#epoch ?? 0n,
      sharedEngine: node.onEngine ?? false,
    };
  }

  #noticeFence(error: unknown): void {
    if (reasonOf(error) !== "FENCED") return;
    this.#isFenced = true;
    this.#isRunning = false;
    this.#cancelTimer?.();
    this.#deps.onFenced("another process registered with this node's id");
  }
}

/** Throws for an answer from another cluster: a data folder stays in its cluster (D19). */
function requireSameCluster(own: string, answered: string): void {
  if (own === "" || answered === own) return;
  throw new GroveError(
    "CLUSTER_MISMATCH",
    `this data folder belongs to the cluster ${own}, and the metaserver is of ${answered}`,
    { metadata: { own_cluster: own, other_cluster: answered } },
  );
}
