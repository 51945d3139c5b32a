// The leases in PostgreSQL: processes with their numbers, and the take-over of roots from those that ended.
import type pg from "pg";
import { GroveError } from "#base/errors.ts";
import { SHARED_LEASE_MS } from "./lease-holder.ts";
import type { SeenInstance } from "./lease-watch.ts";

/** Processes that have ended, at a time. */
const ENDED_AT_ONCE = 16;

/** A root that a take-over has brought, with its new epoch. */
export interface TakenRoot {
  readonly number: number;
  readonly epoch: number;
  readonly batch: number;
}

/** Who holds a root, and where that process is reached. */
export interface RootHolder extends SeenInstance {
  readonly number: number;
  readonly address: string;
  readonly isEnded: boolean;
}

/** Begins the lease of a process. Its name is used once. */
export async function joinInstances(
  client: pg.ClientBase,
  id: string,
  address: string,
  leaseMs: number = SHARED_LEASE_MS,
): Promise<void> {
  await client.query(
    "INSERT INTO instance (id, address, beat, is_ended, lease_ms) VALUES ($1, $2, 1, FALSE, $3)",
    [id, address, leaseMs],
  );
}

/** Renews it; false once it has ended. */
export async function renewInstance(client: pg.ClientBase, id: string): Promise<boolean> {
  const { rowCount } = await client.query(
    "UPDATE instance SET beat = beat + 1 WHERE id = $1 AND NOT is_ended",
    [id],
  );
  return rowCount === 1;
}

/** Ends it: its roots may be taken at once. */
export async function endInstance(client: pg.ClientBase, id: string): Promise<void> {
  await client.query("UPDATE instance SET is_ended = TRUE WHERE id = $1", [id]);
}

/** The processes whose leases run. */
export async function runningInstances(client: pg.ClientBase): Promise<SeenInstance[]> {
  const { rows } = await client.query(
    'SELECT id, beat, lease_ms AS "leaseMs" FROM instance WHERE NOT is_ended ORDER BY id',
  );
  return rows as SeenInstance[];
}

/** The holder of a user's root; undefined when there is no such root. */
export async function holderOf(client: pg.ClientBase, owner: string): Promise<RootHolder | undefined> {
  const { rows } = await client.query(
    `SELECT root.number, instance.id, beat, address, is_ended AS "isEnded" FROM root
     JOIN holding ON root_number = root.number JOIN instance ON instance.id = holding.instance WHERE owner = $1`,
    [owner],
  );
  return rows[0] as RootHolder | undefined;
}

/** Roots of a process, the lowest numbers first. */
export async function rootsOf(client: pg.ClientBase, id: string, limit: number): Promise<number[]> {
  const { rows } = await client.query(
    "SELECT root_number AS number FROM holding WHERE instance = $1 ORDER BY root_number LIMIT $2",
    [id, limit],
  );
  return (rows as { number: number }[]).map(({ number }) => number);
}

/**
 * Takes roots from a process that has ended, or whose number is still what the caller has watched; that ends
 * the process's lease for good. Roots that another one has taken before are not among the answer's.
 */
export async function takeRoots(
  client: pg.ClientBase,
  take: { readonly by: string; readonly from: SeenInstance; readonly roots: readonly number[] },
): Promise<TakenRoot[]> {
  const { rows } = await client.query(
    'SELECT root_number AS "number", epoch, last_batch AS batch FROM take_roots($1, $2, $3, $4)',
    [take.by, take.from.id, take.from.beat, take.roots],
  );
  return rows as TakenRoot[];
}

/** All roots of a process, with those of a take-over that is under way: it has locked the process's row. */
export async function heldBy(client: pg.ClientBase, id: string): Promise<TakenRoot[]> {
  await client.query("SELECT 1 FROM instance WHERE id = $1 FOR UPDATE", [id]);
  const { rows } = await client.query(
    `SELECT root_number AS "number", epoch, last_batch AS batch FROM holding WHERE instance = $1
     ORDER BY root_number`,
    [id],
  );
  return rows as TakenRoot[];
}

/** Those among the taken roots that the process holds still. */
export async function stillHeld<T extends Pick<TakenRoot, "number" | "epoch">>(
  client: pg.ClientBase,
  id: string,
  taken: readonly T[],
): Promise<T[]> {
  const { rows } = await client.query(
    'SELECT root_number AS "number", epoch FROM holding WHERE instance = $1 AND root_number = ANY ($2)',
    [id, taken.map(({ number }) => number)],
  );
  const epochs = new Map((rows as TakenRoot[]).map(({ number, epoch }) => [number, epoch]));
  return taken.filter(({ number, epoch }) => epochs.get(number) === epoch);
}

/** True while a process holds a root, under whatever epoch. */
export async function isHolder(client: pg.ClientBase, id: string, number: number): Promise<boolean> {
  const { rowCount } = await client.query("SELECT 1 FROM holding WHERE root_number = $1 AND instance = $2", [
    number,
    id,
  ]);
  return rowCount === 1;
}

/** Processes that have ended and still hold roots; a few at a time, in the order of their ids, behind one. */
export async function endedHolders(client: pg.ClientBase, afterId: string): Promise<string[]> {
  const { rows } = await client.query(
    `SELECT id FROM instance WHERE is_ended AND id > $1
       AND EXISTS (SELECT 1 FROM holding WHERE holding.instance = instance.id)
     ORDER BY id LIMIT ${ENDED_AT_ONCE}`,
    [afterId],
  );
  return (rows as { id: string }[]).map(({ id }) => id);
}

/** Names of roots. */
export async function ownersOf(
  client: pg.ClientBase,
  numbers: readonly number[],
): Promise<{ number: number; owner: string; rootId: string }[]> {
  const { rows } = await client.query(
    'SELECT number, owner, root_id AS "rootId" FROM root WHERE number = ANY ($1) ORDER BY number',
    [numbers],
  );
  return rows as { number: number; owner: string; rootId: string }[];
}

/** SQLSTATE of a second root of one owner, or of one id. */
const TWICE = "23505";

/**
 * Makes a user's root, or finds the one with this id, and tells who holds it. Throws PATH_EXISTS for a user with
 * another root.
 */
export async function makeRoot(
  client: pg.ClientBase,
  root: {
    readonly owner: string;
    readonly rootId: string;
    readonly instance: string;
    readonly nowMs: number;
  },
): Promise<{ number: number; instance: string; epoch: number }> {
  const { owner, rootId, instance, nowMs } = root;
  const made = await client
    .query("SELECT make_root($1, $2, $3, $4) AS number", [owner, rootId, instance, nowMs])
    .catch((error: unknown) => {
      if ((error as { code?: unknown }).code !== TWICE) throw error;
      const text = "this user's root, or a root with this id, is in the shared engine already";
      throw new GroveError("PATH_EXISTS", text);
    });
  const { number } = made.rows[0] as { number: number };
  const { rows } = await client.query("SELECT instance, epoch FROM holding WHERE root_number = $1", [number]);
  return { number, ...(rows[0] as { instance: string; epoch: number }) };
}
