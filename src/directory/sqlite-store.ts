// The commands of the metadata store on SQLite, synchronous and each one transaction; runs inside the worker.
import { closeSync, openSync } from "node:fs";
import { GroveError } from "#base/errors.ts";
import { NODE_LEASE_MS, NODES_MAX, SHARED_ROOTS_LISTED_MAX } from "#base/limits.ts";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type {
  GrantChange,
  Heartbeat,
  HeartbeatOutcome,
  Lease,
  LocatedRoot,
  NodeCaller,
  NodeRecord,
  NodeRegistration,
  RootConflict,
  SharedRoot,
} from "./directory.ts";
import { lockFile } from "./file-lock.ts";
import { mayHold, maySpeak, type NodeRow, toNodeRecord } from "./node-row.ts";
import { chooseNode } from "./placement.ts";
import { registerRoots } from "./root-takeover.ts";
import { SqlSession } from "./sql-session.ts";
import { migrate } from "./sqlite-schema.ts";

/** The caller's clocks at the moment of a command, so that tests drive the worker's time too. */
export interface Now {
  readonly wallMs: number;
  readonly steadyMs: number;
}

const NODE_COLUMNS = `n.*, (SELECT COUNT(*) FROM roots r WHERE r.fs_id = n.fs_id) AS root_count`;

/** The store's file, opened by one process at a time for writing. */
export class SqliteStore {
  /** Every commit is flushed before it is answered. */
  readonly #durable: SqlSession;
  /** For heartbeats alone: losing the last ones in a power cut costs nothing, and flushing them would wear out SD cards. */
  readonly #relaxed: SqlSession;
  /** End of each lease on the steady clock, because the wall clock may jump. */
  readonly #leaseEndsSteadyMs = new Map<string, number>();
  readonly #unlock: () => void;
  #placementFromSteadyMs: number;

  constructor(path: string, now: Now) {
    // Leases are counted in this process alone.
    this.#unlock = lockFile(`${path}.lock`, "another process has opened this metadata store");
    // Made before SQLite does, since the files hold e-mail addresses and the mask of the process may be lenient.
    closeSync(openSync(path, "a", 0o600));
    this.#durable = new SqlSession(path, "FULL");
    try {
      migrate(this.#durable.database);
      this.#relaxed = new SqlSession(path, "NORMAL");
    } catch (error) {
      this.#durable.close();
      this.#unlock();
      throw error;
    }
    for (const node of this.#durable.all("SELECT fs_id, last_seen_ms FROM nodes") as NodeRow[]) {
      // A wall clock that went back in between must not stretch a lease.
      const restMs = Math.min(NODE_LEASE_MS, NODE_LEASE_MS - (now.wallMs - Number(node.last_seen_ms)));
      this.#leaseEndsSteadyMs.set(node.fs_id, now.steadyMs + restMs);
    }
    const heldSinceMs = Number(this.#setting("placement_held_since_ms") ?? 0);
    this.#placementFromSteadyMs =
      now.steadyMs + Math.min(NODE_LEASE_MS, heldSinceMs + NODE_LEASE_MS - now.wallMs);
  }

  clusterId(): string | undefined {
    return this.#setting("cluster_id");
  }

  adoptClusterId(now: Now, clusterId: string): void {
    this.#durable.write(() => {
      const own = this.clusterId();
      if (own === undefined) this.#adopt(now, clusterId);
      else if (own !== clusterId) throw clusterMismatch(own);
    });
  }

  register(now: Now, registration: NodeRegistration): Lease {
    return this.#durable.write(() => {
      const clusterId = this.#joinCluster(now, registration.clusterId);
      const known = this.#node(registration.fsId);
      if (known !== undefined) {
        maySpeak(known, registration.speaker);
        if (this.#isLive(now, known.fs_id)) mayHold(known, registration);
      } else if (this.#durable.all("SELECT fs_id FROM nodes").length >= NODES_MAX) {
        throw new GroveError("OVERLOADED", `a cluster has at most ${NODES_MAX} nodes`);
      }
      const epoch = Number(known?.epoch ?? 0n) + 1;
      this.#putNode(now, registration, epoch);
      const conflicts: RootConflict[] = registerRoots(registration, this.#durable, now.wallMs);
      this.#leaseEndsSteadyMs.set(registration.fsId, now.steadyMs + NODE_LEASE_MS);
      return { clusterId, epoch, conflicts };
    });
  }

  heartbeat(now: Now, beat: Heartbeat): HeartbeatOutcome {
    const node = this.#node(beat.fsId);
    if (node === undefined) return { known: false, sendFull: false };
    maySpeak(node, beat.speaker);
    requireEpoch(node, beat.epoch);
    // A newer epoch than the store's means that the store was restored from an older copy, which then lacks roots too.
    const isStoreOlder = BigInt(beat.epoch) > node.epoch;
    const key = beat.speaker.kind === "mock" ? null : beat.speaker.keyFingerprint;
    this.#relaxed.run(
      `UPDATE nodes SET disk_free = ?, draining = ?, roots_version = ?, holder_key = ?, epoch = ?, last_seen_ms = ?
       WHERE fs_id = ?`,
      beat.diskFreeBytes,
      beat.draining ? 1 : 0,
      String(beat.rootsVersion),
      key,
      beat.epoch,
      now.wallMs,
      beat.fsId,
    );
    this.#leaseEndsSteadyMs.set(beat.fsId, now.steadyMs + NODE_LEASE_MS);
    const areRootsOlder = beat.rootsVersion < BigInt(node.roots_version ?? "0");
    return { known: true, sendFull: isStoreOlder || areRootsOlder };
  }

  locateRoot(now: Now, owner: string): LocatedRoot {
    return (
      this.findRoot(now, owner) ??
      this.#durable.write(() => this.findRoot(now, owner) ?? this.#place(now, owner))
    );
  }

  claimRoot(now: Now, owner: string, caller: NodeCaller): LocatedRoot {
    this.#requireCaller(caller);
    const located = this.locateRoot(now, owner);
    if (located.fsId === caller.fsId) {
      this.#durable.run("UPDATE roots SET held = 1 WHERE owner = ? AND held = 0", owner);
    }
    return located;
  }

  findRoot(now: Now, owner: string): LocatedRoot | undefined {
    const row = this.#durable.get(
      `SELECT r.owner, r.root_id, r.fs_id, n.address FROM roots r LEFT JOIN nodes n ON n.fs_id = r.fs_id
       WHERE r.owner = ?`,
      owner,
    ) as RootRow | undefined;
    return row === undefined ? undefined : this.#located(now, row);
  }

  rootsSharedWith(now: Now, user: string): SharedRoot[] {
    const rows = this.#durable.all(
      `SELECT r.owner, r.root_id, r.fs_id, n.address, g.path FROM grants g JOIN roots r ON r.owner = g.owner
       LEFT JOIN nodes n ON n.fs_id = r.fs_id WHERE g.user = ? AND g.granted = 1 ORDER BY g.owner, g.path LIMIT ?`,
      user,
      SHARED_ROOTS_LISTED_MAX,
    ) as (RootRow & { path: string })[];
    return rows.map((row) => ({ ...this.#located(now, row), path: row.path }));
  }

  setGrant(_now: Now, change: GrantChange): boolean {
    return this.#durable.write(() => {
      this.#requireCaller(change.node);
      const root = this.#durable.get("SELECT fs_id FROM roots WHERE owner = ?", change.owner);
      if ((root as RootRow | undefined)?.fs_id !== change.node.fsId) {
        throw new GroveError("WRONG_NODE", "this root does not live on the calling node");
      }
      return (
        this.#durable.run(
          `INSERT INTO grants (owner, user, path, version, granted) VALUES (?, ?, ?, ?, ?)
           ON CONFLICT DO UPDATE SET version = excluded.version, granted = excluded.granted
           WHERE excluded.version > grants.version`,
          change.owner,
          change.user,
          change.path,
          change.version,
          change.granted ? 1 : 0,
        ) > 0
      );
    });
  }

  nodes(now: Now): NodeRecord[] {
    const rows = this.#durable.all(`SELECT ${NODE_COLUMNS} FROM nodes n ORDER BY n.fs_id`) as NodeRow[];
    return rows.map((row) => toNodeRecord(row, this.#isLive(now, row.fs_id)));
  }

  close(): void {
    this.#relaxed.close();
    this.#durable.close();
    this.#unlock();
  }

  #joinCluster(now: Now, offered: string): string {
    const own = this.clusterId();
    if (own !== undefined) {
      if (offered !== "" && offered !== own) throw clusterMismatch(own);
      return own;
    }
    if (offered !== "") this.#adopt(now, offered);
    else this.#putSetting("cluster_id", ulid({ wallMs: () => now.wallMs }, systemRandom));
    return this.clusterId() ?? "";
  }

  /** The store is new and the cluster is not: other nodes still have to say which roots they hold. */
  #adopt(now: Now, clusterId: string): void {
    this.#putSetting("cluster_id", clusterId);
    this.#putSetting("placement_held_since_ms", String(now.wallMs));
    this.#placementFromSteadyMs = now.steadyMs + NODE_LEASE_MS;
  }

  #place(now: Now, owner: string): LocatedRoot {
    const waitMs = this.#placementFromSteadyMs - now.steadyMs;
    if (waitMs > 0) {
      throw new GroveError(
        "STARTING",
        "the metadata store is new and waits for the FileServers to list their roots",
        {
          metadata: { retry_after_ms: String(Math.ceil(waitMs)) },
        },
      );
    }
    const node = chooseNode(this.nodes(now));
    if (node === undefined) {
      throw new GroveError("NODE_DRAINING", "no FileServer that takes new roots is running");
    }
    const rootId = ulid({ wallMs: () => now.wallMs }, systemRandom);
    this.#durable.run(
      "INSERT INTO roots (owner, root_id, fs_id, held, version, assigned_ms) VALUES (?, ?, ?, 0, 0, ?)",
      owner,
      rootId,
      node.fsId,
      now.wallMs,
    );
    return { owner, rootId, fsId: node.fsId, address: node.address, live: true };
  }

  #putNode(now: Now, node: NodeRegistration, epoch: number): void {
    const key = node.speaker.kind === "mock" ? null : node.speaker.keyFingerprint;
    this.#durable.run(
      `INSERT INTO nodes (fs_id, name, address, software_version, instance_id, data_id, holder_key, first_key, epoch,
         disk_total, disk_free, disk_reserve, draining, roots_version, last_seen_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, NULL, ?)
       ON CONFLICT DO UPDATE SET name = excluded.name, address = excluded.address,
         software_version = excluded.software_version, instance_id = excluded.instance_id, data_id = excluded.data_id,
         holder_key = excluded.holder_key, first_key = COALESCE(first_key, excluded.first_key), epoch = excluded.epoch,
         disk_total = excluded.disk_total, disk_free = excluded.disk_free, disk_reserve = excluded.disk_reserve,
         draining = 0, roots_version = NULL, last_seen_ms = excluded.last_seen_ms`,
      node.fsId,
      node.name,
      node.address,
      node.softwareVersion,
      node.instanceId,
      node.dataId,
      key,
      key,
      epoch,
      node.diskTotalBytes,
      node.diskFreeBytes,
      node.diskReserveBytes,
      now.wallMs,
    );
  }

  #requireCaller(caller: NodeCaller): void {
    const node = this.#node(caller.fsId);
    if (node === undefined) {
      throw new GroveError("STARTING", "this node has not registered with the metadata store");
    }
    maySpeak(node, caller.speaker);
    requireEpoch(node, caller.epoch);
  }

  #node(fsId: string): NodeRow | undefined {
    const row = this.#durable.get("SELECT n.*, 0 AS root_count FROM nodes n WHERE n.fs_id = ?", fsId);
    return row as NodeRow | undefined;
  }

  #located(now: Now, row: RootRow): LocatedRoot {
    const live = this.#isLive(now, row.fs_id);
    return { owner: row.owner, rootId: row.root_id, fsId: row.fs_id, address: row.address ?? "", live };
  }

  #isLive(now: Now, fsId: string): boolean {
    return (this.#leaseEndsSteadyMs.get(fsId) ?? Number.NEGATIVE_INFINITY) > now.steadyMs;
  }

  #setting(key: string): string | undefined {
    const row = this.#durable.get("SELECT value FROM settings WHERE key = ?", key);
    return (row as { value: string } | undefined)?.value;
  }

  #putSetting(key: string, value: string): void {
    this.#durable.run("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", key, value);
  }
}

interface RootRow {
  readonly owner: string;
  readonly root_id: string;
  readonly fs_id: string;
  readonly address: string | null;
}

function requireEpoch(node: NodeRow, epoch: number): void {
  if (BigInt(epoch) < node.epoch) {
    throw new GroveError("FENCED", "another process has registered this node id since: this one must stop", {
      metadata: { epoch: String(node.epoch) },
    });
  }
}

function clusterMismatch(own: string): GroveError {
  return new GroveError("CLUSTER_MISMATCH", "this metadata store belongs to another cluster", {
    metadata: { cluster_id: own },
  });
}
