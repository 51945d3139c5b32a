// Commits whose answer was lost: the database itself is asked whether the transaction took place.
import type { ClientBase } from "pg";
import type { GroveError } from "#base/errors.ts";
import { remedyOf, unavailable } from "./postgres-errors.ts";

/** SQLSTATE of a question about a transaction of which the database has never heard: a crash has undone it. */
const NEVER_BEGUN = "22023";

/** A commit that was sent and not answered. */
export class UnknownCommit extends Error {
  readonly transaction: string;
  /** What the command has answered, which counts if the commit took place. */
  readonly result: unknown;

  constructor(transaction: string, result: unknown, cause: unknown) {
    super("the commit was not answered", { cause });
    this.transaction = transaction;
    this.result = result;
  }
}

/** What a transaction selects of itself, as `transaction`: afterwards nobody could tell which one it was. */
export const TRANSACTION = "CAST(txid_current() AS TEXT) AS transaction";

/** Commits. Throws UnknownCommit when the connection breaks before the answer. */
export async function commit(client: ClientBase, transaction: string, result: unknown): Promise<void> {
  try {
    await client.query("COMMIT");
  } catch (error) {
    throw remedyOf(error) === "reconnect" ? new UnknownCommit(transaction, result, error) : error;
  }
}

/** True when it took place, false when it never will. Throws it again while the server still works on it. */
export async function tookPlace(client: ClientBase, unknown: UnknownCommit): Promise<boolean> {
  try {
    const { rows } = await client.query("SELECT txid_status(CAST($1 AS BIGINT)) AS status", [
      unknown.transaction,
    ]);
    const { status } = rows[0] as { readonly status: string | null };
    if (status === "committed") return true;
    if (status === "aborted") return false;
  } catch (error) {
    if ((error as { code?: unknown }).code === NEVER_BEGUN) return false;
    throw error;
  }
  throw unknown;
}

/** The refusal while nobody knows whether the change was made: who asked must look. */
export function outcomeUnknown(): GroveError {
  return unavailable(
    "the metadata store's database was lost in the middle of a change, and whether that was made is not known: look before you try again",
  );
}
