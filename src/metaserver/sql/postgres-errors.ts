// Classifies failures of the database: retry or not, and what to report, without passwords and URLs.
import { GroveError } from "#base/errors.ts";

/** What may be done about a failed statement or connection. */
export type Remedy =
  /** Another transaction was in the way: the same again, on the same connection. */
  | "again"
  /** The connection is lost or leads to a server that takes no changes: the same again, on another one. */
  | "reconnect"
  /** An immediate retry changes nothing. */
  | "none";

/** SQLSTATE: serialisation failure, deadlock, and a row that another transaction made first. */
const AGAIN: ReadonlySet<string> = new Set(["40001", "40P01", "23505"]);
/**
 * Shutdown by the administrator or a crash, and start; idle too long in a transaction or session; a read-only
 * server; tables that are gone during a restore.
 */
const RECONNECT: ReadonlySet<string> = new Set([
  "57P01",
  "57P02",
  "57P03",
  "25P03",
  "57P05",
  "25006",
  "42P01",
  "3F000",
]);
/** Refusals that a restart of the database does not heal. */
const REFUSED: ReadonlySet<string> = new Set(["28P01", "28000", "3D000", "42501"]);

const TEXTS: Readonly<Record<string, string>> = {
  "28P01": "refused the password",
  "28000": "refused the user",
  "3D000": "does not have that database",
  "42501": "does not let that user make or use the schema grove",
  "53300": "takes no more connections",
  "53100": "has no space left on its disk",
  "57014": "did not answer in time",
  "55P03": "did not answer in time: another process holds a lock",
  "57P01": "is shutting down",
  "57P03": "is starting",
  "25006": "takes no changes: it is a standby",
};

/** What may be done about a failure of pg. */
export function remedyOf(error: unknown): Remedy {
  const code = codeOf(error);
  if (AGAIN.has(code)) return "again";
  // Class 08 is the connection; an error without SQLSTATE came from the socket or from pg itself.
  const isSqlState = /^[0-9A-Z]{5}$/.test(code) && code !== "EPIPE";
  return RECONNECT.has(code) || code.startsWith("08") || !isSqlState ? "reconnect" : "none";
}

/** True when the database refuses Grove or is another cluster's, which an operator must correct. */
export function isRefusal(error: unknown): boolean {
  return REFUSED.has(codeOf(error)) || (error instanceof GroveError && error.code !== "STORE_UNAVAILABLE");
}

/** SQLSTATE: another transaction has kept a lock for too long. */
const LOCKED = "55P03";
/** SQLSTATE: a statement took too long. */
const CANCELLED = "57014";

/** True when another transaction has kept a lock for too long: the database itself answers. */
export function isLocked(error: unknown): boolean {
  return codeOf(error) === LOCKED;
}

/** The failure of a statement that does nothing but wait for a lock: who waits in a line waits more than once. */
export function asLocked(error: unknown): unknown {
  return codeOf(error) === CANCELLED ? Object.assign(new Error("locked"), { code: LOCKED }) : error;
}

/** The failure as a GroveError. */
export function toStoreError(error: unknown): GroveError {
  if (error instanceof GroveError) return error;
  const code = codeOf(error);
  const text = TEXTS[code] ?? (code === "" ? "broke the connection" : `failed: ${code}`);
  // Messages of the database may quote values, which are people's addresses.
  return new GroveError("STORE_UNAVAILABLE", `the metadata store's database ${text}`);
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

/** Undefined table stands for everything that was moved: the next connection checks what is there. */
export function otherStore(): Error {
  return Object.assign(new Error("the database is another one"), { code: "42P01" });
}

/** More to do than there is time for; says nothing of the database. */
export function overloaded(): GroveError {
  return new GroveError("OVERLOADED", "the metadata store has too much to do; try again");
}

/** A store that cannot be used now. */
export function unavailable(message: string): GroveError {
  return new GroveError("STORE_UNAVAILABLE", message);
}
