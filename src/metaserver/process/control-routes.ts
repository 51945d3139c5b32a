// The control plane's routes: FileServers register, beat, and ask where a user's root lives (D19).
import type { MessageInitShape } from "@bufbuild/protobuf";
import { GroveError } from "#base/errors.ts";
import { HEARTBEAT_INTERVAL_MS } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { canonicalUsername, joinPath, splitPath } from "#base/names.ts";
import { requireNeighbour, VERSION } from "#base/version.ts";
import type { Directory, Lease, NodeRegistration } from "#metaserver/directory/directory.ts";
import type { SubjectRecord } from "#metaserver/directory/subject.ts";
import { groupNameOf } from "#security/policy/group.ts";
import type { CallContext, ServiceHandlers } from "#wire/grpc/handler.ts";
import type {
  HeartbeatRequest,
  HeartbeatResponseSchema,
  ListReboundSubjectsRequest,
  MetaServer,
  RootShareRequest,
  RootUnshareRequest,
} from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import type { GroupGate } from "./group-gate.ts";
import { type NodeSpeakerDeps, speakerFor } from "./node-speaker.ts";
import {
  epochOf,
  namesVersionOf,
  storedBytes,
  storedVersion,
  toRegistration,
} from "./registration-message.ts";
import type { SubjectGate } from "./subject-gate.ts";
import type { UserStateGate } from "./user-state-gate.ts";

/** Dependencies of the routes. */
export interface ControlRoutesDeps extends NodeSpeakerDeps {
  readonly directory: Directory;
  readonly subjects: SubjectGate;
  readonly userStates: Pick<UserStateGate, "requireEntry" | "states">;
  readonly groups: Pick<GroupGate, "mark">;
  /** Called with the cluster's id at every registration, so that it survives a lost store. */
  readonly rememberCluster: (clusterId: string) => Promise<void>;
  /** Called with each registered node's id, for the same reason. */
  readonly rememberNode: (fsId: string) => Promise<void>;
}

/** The handlers of the control plane. Each first proves its caller. */
export type ControlRoutes = Pick<
  ServiceHandlers<typeof MetaServer>,
  "registerFileServer" | "heartbeat" | "claimRoot" | "rootShare" | "rootUnshare" | "listReboundSubjects"
>;

/** Log lines of one registration for roots held twice; a given-up node may come back with all of its own. */
const CONFLICTS_LOGGED = 100;

/** Makes the handlers. */
export function controlRoutes(deps: ControlRoutesDeps): ControlRoutes {
  const { directory, log } = deps;
  const record =
    (granted: boolean) =>
    async (request: RootShareRequest | RootUnshareRequest, context: CallContext): Promise<object> => {
      const speaker = speakerFor(request.fsId, context, deps);
      await directory.setGrant({
        owner: canonicalUsername(request.owner),
        path: joinPath(splitPath(request.path)),
        user: canonicalUsername(request.user),
        version: storedVersion("version", request.version),
        namesVersion: namesVersionOf(request),
        granted,
        node: { fsId: request.fsId, epoch: epochOf(request.epoch), speaker },
      });
      return {};
    };
  return {
    async registerFileServer(request, context) {
      const registration = toRegistration(request, speakerFor(request.fsId, context, deps));
      const node = { name: `FileServer ${registration.fsId}`, version: registration.softwareVersion };
      requireNeighbour(node, "this MetaServer");
      const lease = await directory.register(registration);
      await deps.rememberCluster(lease.clusterId);
      if (lease.heldEpoch !== undefined) {
        return {
          clusterId: lease.clusterId,
          heldEpoch: BigInt(lease.heldEpoch),
          serverVersion: VERSION,
        };
      }
      if (lease.nextPage !== undefined) {
        return { clusterId: lease.clusterId, nextPage: lease.nextPage, serverVersion: VERSION };
      }
      await deps.rememberNode(registration.fsId);
      logRegistered(log, registration, lease);
      return {
        clusterId: lease.clusterId,
        heartbeatSeconds: HEARTBEAT_INTERVAL_MS / 1_000,
        epoch: BigInt(lease.epoch),
        serverVersion: VERSION,
      };
    },

    heartbeat: (request, context) => heartbeat(deps, request, context),

    listReboundSubjects: (request, context) => reboundSubjects(deps, request, context),

    async claimRoot(request, context) {
      const speaker = speakerFor(request.fsId, context, deps);
      const owner = canonicalUsername(request.username);
      const restoredAtMs = request.restoredAtMs === 0n ? undefined : epochOf(request.restoredAtMs);
      const { needsNumber } = request;
      const node = { fsId: request.fsId, epoch: epochOf(request.epoch), speaker, restoredAtMs, needsNumber };
      // Before anything is noted of the person: whose certificate is left over must bind no address.
      await directory.requireNode(node);
      await requireMadeGroup(deps, owner);
      deps.userStates.requireEntry({ username: owner, issuer: request.issuer, subject: request.subject });
      await deps.subjects.admit({ username: owner, issuer: request.issuer, subject: request.subject });
      const { rootId, fsId, address, replacesLost, number = 0 } = await directory.claimRoot(owner, node);
      return { rootId, fsId, address, replacesLost: replacesLost === true, rootNumber: number };
    },

    // A repeated or late message changes nothing and is acknowledged without an error (M-03).
    rootShare: record(true),
    rootUnshare: record(false),
  };
}

/**
 * A group's root has its place since the group was made. A mistyped name gets none, which would later pass for
 * the files of an earlier group.
 */
async function requireMadeGroup({ directory }: ControlRoutesDeps, owner: string): Promise<void> {
  const group = groupNameOf(owner);
  if (group === undefined || (await directory.findRoot(owner)) !== undefined) return;
  throw new GroveError("NO_SUCH_PATH", `there is no group ${group}`);
}

async function heartbeat(
  deps: ControlRoutesDeps,
  request: HeartbeatRequest,
  context: CallContext,
): Promise<MessageInitShape<typeof HeartbeatResponseSchema>> {
  const { directory, clock } = deps;
  const outcome = await directory.heartbeat({
    fsId: request.fsId,
    epoch: epochOf(request.epoch),
    rootsVersion: storedVersion("roots_version", request.rootsVersion),
    diskFreeBytes: storedBytes(request.diskFree),
    rootCount: request.rootCount,
    draining: request.draining,
    instanceId: request.instanceId,
    speaker: speakerFor(request.fsId, context, deps),
  });
  const { known, sendFull, subjectsVersion = 0n } = outcome;
  deps.subjects.heard(subjectsVersion);
  const { userStatesDigest } = request;
  const userStatesDiffer = userStatesDigest !== "" && userStatesDigest !== deps.userStates.states.digest;
  return {
    known,
    sendFull,
    subjectsVersion,
    userStatesDiffer,
    groupsMark: deps.groups.mark,
    nowMs: BigInt(Math.trunc(clock.wallMs())),
  };
}

async function reboundSubjects(
  deps: ControlRoutesDeps,
  request: ListReboundSubjectsRequest,
  context: CallContext,
): Promise<{ subjects: (SubjectRecord & { formerUsername: string })[] }> {
  const speaker = speakerFor(request.fsId, context, deps);
  const node = { fsId: request.fsId, epoch: epochOf(request.epoch), speaker };
  const version = storedVersion("after_version", request.afterVersion);
  const after = { version, username: request.afterUsername };
  const subjects = await deps.directory.reboundSubjects(node, after);
  if (version > 0n) await deps.directory.noteChangesHeard(request.fsId, version);
  return { subjects: subjects.map(({ former = "", ...rest }) => ({ ...rest, formerUsername: former })) };
}

function logRegistered(log: Logger, registration: NodeRegistration, lease: Lease): void {
  const { fsId, address, softwareVersion: version, page, roots } = registration;
  const node = { node: fsId, address, epoch: lease.epoch };
  const size = page === undefined ? { roots: roots.length } : { pages: page.page + 1 };
  log.info("node_registered", { ...node, ...size, version });
  const { conflicts, copies = [] } = lease;
  for (const { owner, target } of copies.slice(0, CONFLICTS_LOGGED)) {
    const todo = `it is kept and not served; where ${target} has the root: grove root move ${owner} -confirm; where it has lost it: -take_back`;
    log.error("root_copy_found", { ...node, owner, lives_on: target, of: copies.length, todo });
  }
  for (const { owner, recordedFsId } of conflicts.slice(0, CONFLICTS_LOGGED)) {
    log.error("root_held_twice", { ...node, owner, recorded_node: recordedFsId, of: conflicts.length });
  }
}
