// People with another address in PostgreSQL: one transaction for all roots, once no process knows their sessions.
import type pg from "pg";
import { GroveError } from "#base/errors.ts";
import type { UserRename } from "#storage/contract/user-rename.ts";

/** Answers of the function that are no number of rows. */
const [WAITS, BOTH, LEAVES] = [-1, -2, -3];

/** The version of the last rename. */
export async function renamedUpTo(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query("SELECT version FROM renamed_user");
  return Number((rows[0] as { version: number | string }).version);
}

/** Says that the person has no session in this process any more. */
export async function readyToRename(client: pg.ClientBase, instance: string, version: number): Promise<void> {
  await client.query("UPDATE instance SET renamed_up_to = greatest(renamed_up_to, $2) WHERE id = $1", [
    instance,
    version,
  ]);
}

/**
 * Renames, and answers how many rows had the name: none where another process has renamed; undefined while a process
 * that runs is not ready. Throws PATH_EXISTS when both have a root, BAD_ARGUMENT while the root moves.
 */
export async function renameUserRows(
  client: pg.ClientBase,
  { from, to, version }: UserRename,
): Promise<number | undefined> {
  const { rows } = await client.query("SELECT rename_user($1, $2, $3) AS answer", [from, to, version]);
  const answer = Number((rows[0] as { answer: number | string }).answer);
  if (answer === BOTH) throw new GroveError("PATH_EXISTS", `both ${from} and ${to} have a root`);
  if (answer === LEAVES)
    throw new GroveError("BAD_ARGUMENT", `the root of ${from} is under a move; end that first`);
  return answer === WAITS ? undefined : answer;
}

/** Ends the marks of roots whose rows their holder fetches again; answers which of them had one. */
export async function clearRenamedRoots(
  client: pg.ClientBase,
  numbers: readonly number[],
): Promise<readonly number[]> {
  const { rows } = await client.query(
    'DELETE FROM renamed_root WHERE root_number = ANY ($1) RETURNING root_number AS "number"',
    [numbers],
  );
  return (rows as { number: number | string }[]).map(({ number }) => Number(number));
}
