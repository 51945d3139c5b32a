// A node as a row of the store: the right to speak for it and to hold its id, and its public form.
import { GroveError } from "#base/errors.ts";
import type { Heartbeat, NodeRecord, NodeRegistration } from "./directory.ts";
import type { Speaker } from "./node-caller.ts";

/** A row of the table of nodes, with the number of roots counted in. */
export interface NodeRow {
  readonly fs_id: string;
  readonly name: string;
  readonly address: string;
  readonly software_version: string;
  readonly instance_id: string;
  readonly data_id: string;
  readonly holder_key: string | null;
  readonly first_key: string | null;
  readonly epoch: bigint;
  readonly disk_total: bigint;
  readonly disk_free: bigint;
  readonly disk_reserve: bigint;
  readonly draining: bigint;
  readonly roots_version: string | null;
  readonly last_seen_ms: bigint;
  readonly root_count: bigint;
  /** Roots of its last list that the store has elsewhere. */
  readonly roots_refused: bigint;
  /** 1 where its roots lie in the shared engine; absent where that was not asked. */
  readonly on_engine?: bigint;
}

/** A setting for each node on the shared engine: a new column would shut out programs of the version before. */
export const ENGINE_PREFIX = "node_engine:";

/** What a query about nodes selects to learn which of them are on the engine. */
export const ON_ENGINE = `(SELECT COUNT(*) FROM settings s WHERE s.key = '${ENGINE_PREFIX}' || n.fs_id) AS on_engine`;

/**
 * Throws CLIENT_CERT_REQUIRED when a certificate without a node's name speaks for an id first registered with
 * another key (D20).
 */
export function maySpeak(node: Pick<NodeRow, "first_key">, speaker: Speaker): void {
  if (speaker.kind !== "generic" || node.first_key === speaker.keyFingerprint) return;
  throw new GroveError(
    "CLIENT_CERT_REQUIRED",
    "this certificate names no node, and the id first registered with another key",
  );
}

/** Throws NODE_ID_HELD unless the newcomer proves to be the restarted holder of the live lease (D19). */
export function mayHold(
  node: Pick<NodeRow, "holder_key" | "data_id" | "instance_id">,
  newcomer: Pick<NodeRegistration, "speaker" | "dataId" | "predecessorId" | "fsId">,
): void {
  const key = newcomer.speaker.kind === "mock" ? null : newcomer.speaker.keyFingerprint;
  // A side without a key is in mock mode, where the data directory is the proof.
  const isSame =
    key === null || node.holder_key === null ? node.data_id === newcomer.dataId : node.holder_key === key;
  if (isSame || continues(node, newcomer)) return;
  throw new GroveError("NODE_ID_HELD", `another FileServer is running as ${newcomer.fsId}`, {
    metadata: { fs_id: newcomer.fsId },
  });
}

/**
 * True for a certificate of this id and the holder's own data directory: only that directory names the
 * lease's process, and it is locked while that runs. A copy made before that process registered names
 * another.
 */
function continues(
  node: Pick<NodeRow, "data_id" | "instance_id">,
  { speaker, dataId, predecessorId = "" }: Pick<NodeRegistration, "speaker" | "dataId" | "predecessorId">,
): boolean {
  return speaker.kind === "named" && node.data_id === dataId && node.instance_id === predecessorId;
}

/**
 * Throws NODE_ID_HELD when a heartbeat comes with another key than the live lease's and from another process.
 * Of two processes with a certificate for one id, only the registered one may change its key.
 */
export function mayBeat(
  node: Pick<NodeRow, "holder_key" | "instance_id" | "fs_id">,
  beat: Pick<Heartbeat, "speaker" | "instanceId">,
): void {
  const key = beat.speaker.kind === "mock" ? null : beat.speaker.keyFingerprint;
  if (key === null || node.holder_key === null || node.holder_key === key) return;
  if (beat.instanceId === node.instance_id) return;
  throw new GroveError("NODE_ID_HELD", `another FileServer is running as ${node.fs_id}`, {
    metadata: { fs_id: node.fs_id },
  });
}

/** Throws FENCED when the speaker's epoch has been replaced (D19). */
export function requireEpoch(node: Pick<NodeRow, "epoch">, epoch: number): void {
  if (BigInt(epoch) >= node.epoch) return;
  throw new GroveError("FENCED", "another process has registered this node id since: this one must stop", {
    metadata: { epoch: String(node.epoch) },
  });
}

/**
 * Keeps the epoch when a registered process registers without naming it: the answer was lost or the message
 * is late. Otherwise it would fence itself.
 */
export function nextEpoch(
  known: Pick<NodeRow, "epoch" | "instance_id"> | undefined,
  { instanceId, lastEpoch = 0 }: NodeRegistration,
): number {
  const epoch = Number(known?.epoch ?? 0n);
  return known?.instance_id === instanceId && lastEpoch < epoch ? epoch : Math.max(epoch, lastEpoch) + 1;
}

/**
 * The epoch of another process, which a registration must name to replace it; undefined when it does. Only a
 * running process learns and names it: an overtaken message names an older one. Throws FENCED.
 */
export function epochInTheWay(
  known: Pick<NodeRow, "epoch" | "instance_id">,
  { instanceId, knownEpoch, lastEpoch = 0 }: NodeRegistration,
): number | undefined {
  if (knownEpoch === undefined || known.instance_id === instanceId) return undefined;
  if (BigInt(knownEpoch) === known.epoch) return undefined;
  // It had the node before the other one took it.
  if (lastEpoch > 0) requireEpoch(known, lastEpoch);
  return Number(known.epoch);
}

/** True when a heartbeat comes from another process than the registered one, if it names its own. */
export function isOfAnother(node: Pick<NodeRow, "instance_id">, { instanceId = "" }: Heartbeat): boolean {
  return instanceId !== "" && instanceId !== node.instance_id;
}

/** The public form of the row. */
export function toNodeRecord(row: NodeRow, live: boolean): NodeRecord {
  return {
    fsId: row.fs_id,
    name: row.name,
    address: row.address,
    softwareVersion: row.software_version,
    epoch: Number(row.epoch),
    diskTotalBytes: row.disk_total,
    diskFreeBytes: row.disk_free,
    diskReserveBytes: row.disk_reserve,
    draining: row.draining === 1n,
    live,
    lastSeenWallMs: Number(row.last_seen_ms),
    rootCount: Number(row.root_count),
    ...(row.on_engine === 1n ? { onEngine: true as const } : {}),
  };
}
