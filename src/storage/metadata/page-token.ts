// Opaque tokens that name the start of a listing's next page.
import { GroveError } from "#base/errors.ts";
import type { InodeId } from "#storage/contract/inode.ts";
import type { ListSort } from "#storage/contract/storage.ts";

/** The last entry of a page, with the fields that its order needs. */
export interface PagePosition {
  readonly name: string;
  /** Size or time by which the listing is sorted; 0 when it is sorted by name alone. */
  readonly value: number;
}

const MAX_LENGTH = 1_024;

/** Makes the token of the page after an entry. */
export function pageToken(directoryId: InodeId, sort: ListSort, position: PagePosition): string {
  const text = JSON.stringify([directoryId, sort, position.value, position.name]);
  return Buffer.from(text).toString("base64url");
}

/**
 * Reads a token; undefined for the first page. Throws BAD_ARGUMENT for a malformed one, or one of another
 * directory or order.
 */
export function readPageToken(token: string, directoryId: InodeId, sort: ListSort): PagePosition | undefined {
  if (token === "") return undefined;
  const parts = token.length <= MAX_LENGTH ? parse(token) : undefined;
  if (parts === undefined) throw badToken();
  const [directory, order, value, name] = parts;
  if (directory !== directoryId || order !== sort || typeof name !== "string") throw badToken();
  if (typeof value !== "number" || !Number.isSafeInteger(value)) throw badToken();
  return { name, value };
}

function parse(token: string): readonly unknown[] | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    return Array.isArray(parts) && parts.length === 4 ? parts : undefined;
  } catch {
    return undefined;
  }
}

function badToken(): GroveError {
  return new GroveError("BAD_ARGUMENT", "this page token does not belong to this listing");
}

/** The column of an order, and whether it descends. */
export function sortOf(sort: ListSort): ["name" | "size" | "mtime", boolean] {
  const [by, direction] = sort.split("-") as ["name" | "size" | "mtime", string | undefined];
  return [by, direction === "desc"];
}
