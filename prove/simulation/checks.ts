// Invariants of the simulated cluster: at every moment, two leases after all faults, and after the stop.
import { NODE_LEASE_MS } from "#base/limits.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import type { Person } from "./person.ts";
import { simulation } from "./scheduler.ts";
import type { SimulatedFileServer, SimulatedMetaServer } from "./servers.ts";

/** The cluster under examination. */
export interface Looked {
  readonly meta: SimulatedMetaServer;
  readonly nodes: readonly SimulatedFileServer[];
  readonly people: readonly Person[];
  readonly violation: (text: string) => void;
}

const CALL_LIMIT_MS = 30_000;
/** Most time between a change in the store and its observation. */
const LOOKED_AT_MS = 1_000;

/** Returns all grants of the store: owner, path, user. */
async function grantsOf({ meta, people }: Looked): Promise<Set<string>> {
  const directory = meta.directory;
  const told = new Set<string>();
  if (directory === undefined) return told;
  for (const { email } of people) {
    const shared = await directory.rootsSharedWith(email);
    for (const { owner, path } of shared) told.add(`${owner} ${path} ${email}`);
  }
  return told;
}

/** Returns the same from the nodes, which decide. */
function heldGrants({ nodes }: Looked): Set<string> {
  const held = new Set<string>();
  for (const node of nodes) {
    for (const [owner, shares] of node.look(({ storage }) => storage.shares.all()) ?? [])
      for (const { path, username } of shares) held.add(`${owner} ${path} ${username}`);
  }
  return held;
}

const difference = (a: ReadonlySet<string>, b: ReadonlySet<string>): string[] =>
  [...a].filter((one) => !b.has(one));

/** Returns what keeps the cluster from having converged; empty when it has. */
export async function unconverged(looked: Looked): Promise<string[]> {
  const { meta, nodes } = looked;
  const scheduler = simulation();
  const { directory } = meta;
  if (directory === undefined) return ["the metaserver is down"];
  return scheduler.runUntil(
    scheduler.within(meta.process, async () => {
      const open: string[] = [];
      const records = new Map((await directory.nodes()).map((record) => [record.fsId, record]));
      for (const node of nodes) {
        const record = records.get(node.id);
        if (node.running === undefined) open.push(`${node.id} is down`);
        else if (record?.live !== true) open.push(`${node.id} has no lease`);
        else if (node.running.state.isFenced) open.push(`${node.id} is fenced`);
        else if (record.diskFreeBytes !== node.disk.freeBytes && node.disk.freeBytes < node.disk.totalBytes)
          open.push(`${node.id} is told to have ${record.diskFreeBytes} bytes free`);
        for (const zombie of node.zombies)
          if (zombie.running.state.isServing) open.push(`the process before of ${node.id} serves on`);
      }
      const told = await grantsOf(looked);
      const held = heldGrants(looked);
      open.push(...difference(held, told).map((grant) => `the metaserver lacks the grant ${grant}`));
      open.push(...difference(told, held).map((grant) => `the metaserver has a grant that ended: ${grant}`));
      const places = new Map((await directory.listRoots()).map(({ owner, fsId }) => [owner, fsId]));
      for (const node of nodes)
        for (const owner of ownersOn(node))
          if (places.get(owner) !== node.id)
            open.push(`${owner} is on ${node.id}, and said to be on ${places.get(owner)}`);
      return open;
    }),
    CALL_LIMIT_MS,
  );
}

/** Records how long each node has been out of the MetaServer's reach, or in it. */
export class LeaseWatch {
  readonly #since = new Map<string, { isReachable: boolean; atMs: number }>();

  /** Compares the reachability between node and MetaServer with the store's lease. */
  async look(looked: Looked): Promise<void> {
    const { meta, nodes, violation } = looked;
    const scheduler = simulation();
    const { nowMs } = scheduler;
    for (const { id, running, host, network } of nodes) {
      const isClear =
        !network.isCut(host, meta.host) &&
        !network.isCut(meta.host, host) &&
        network.disturbance(host, meta.host).delayMs === 0 &&
        network.disturbance(meta.host, host).delayMs === 0;
      const isReachable = isClear && running !== undefined && meta.isUp;
      const before = this.#since.get(id);
      if (before?.isReachable !== isReachable) this.#since.set(id, { isReachable, atMs: nowMs });
    }
    const { directory } = meta;
    if (directory === undefined) return;
    const records = await scheduler.runUntil(
      scheduler.within(meta.process, () => directory.nodes()),
      CALL_LIMIT_MS,
    );
    for (const { fsId, live } of records) {
      const since = this.#since.get(fsId);
      if (since === undefined) continue;
      const forMs = nowMs - since.atMs;
      // A heartbeat that was on its way when its process died renews the lease when it arrives. No MetaServer
      // can tell it from one of a living process, since their clocks agree in nothing. A store that has just
      // been opened gives the rest of a lease.
      const silentMs = nowMs - Math.max(meta.heard.lastMs(fsId) ?? 0, meta.startedAtMs);
      if (live && silentMs > NODE_LEASE_MS + LOOKED_AT_MS)
        violation(`${fsId} has a lease and has not been heard of for ${Math.round(silentMs / 1_000)} s`);
      if (!live && since.isReachable && forMs > 2 * NODE_LEASE_MS)
        violation(`${fsId} has no lease although it could speak for ${Math.round(forMs / 1_000)} s`);
    }
  }
}

/** Returns the owners of a node's roots; none while it is down. */
export function ownersOn(node: Looked["nodes"][number]): readonly string[] {
  return node.look(({ storage }) => storage.roots().map(({ owner }) => owner)) ?? [];
}

/** Checks that no two nodes serve one root: a moving one is shut at its source before another has it. */
export function checkHolders({ nodes, violation }: Looked): void {
  const holders = new Map<string, string>();
  for (const node of nodes) {
    const moves = node.look(({ storage }) => storage.moves.list()) ?? [];
    const isShut = (owner: string): boolean =>
      moves.some((move) => move.owner === owner && move.state === "frozen");
    for (const owner of ownersOn(node).filter((one) => !isShut(one))) {
      const other = holders.get(owner);
      if (other !== undefined) violation(`${owner} has a root on ${other} and on ${node.id}`);
      holders.set(owner, node.id);
    }
  }
}

/** Checks reservations and the servers' sums, which must be exact at rest. */
export async function checkSums({ nodes, people, violation }: Looked): Promise<void> {
  const scheduler = simulation();
  for (const { id, running } of nodes) {
    const promised = running?.service.ledger.promisedBytes ?? 0n;
    if (promised !== 0n) violation(`${id} keeps ${promised} bytes reserved although nothing is uploaded`);
  }
  for (const person of people) {
    const { told, listed } = await scheduler.runUntil(person.usage(), 120_000);
    if (told !== listed) violation(`${person.email} is told ${told} bytes of files, and has ${listed}`);
  }
}

/** Recounts everything in the data of a node that has stopped, and reads every byte. */
export function checkData({ nodes, violation }: Looked): void {
  for (const { id, data } of nodes) {
    const report = checkStorage(data, { repair: false, deep: true });
    if (report.differenceCount > 0)
      violation(`the data of ${id}: ${report.differences.slice(0, 3).join("; ")}`);
  }
}
