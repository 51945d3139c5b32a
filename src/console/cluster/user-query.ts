// What GET /api/users may be asked, and the place in the order where a page ends and the next begins (decision D5).
import { z } from "zod";
import { USERNAME_MAX_LENGTH } from "#base/limits.ts";
import type { MergedUser } from "./user-row.ts";

/** Users on one page of the list (decision D5). */
const USERS_PAGE_MAX = 500;
/** Users on one page unless told otherwise. */
const USERS_PAGE_DEFAULT = 100;

/** The query of GET /api/users. */
export const usersQuery = z
  .object({
    /** Part of a username, in any case. */
    q: z.string().max(USERNAME_MAX_LENGTH).optional(),
    /** Id of a node: only those whose root lives there. */
    node: z.string().min(1).max(63).optional(),
    /** true: only those who are locked out. */
    locked: z.literal("true").optional(),
    sort: z.enum(["usage", "name"]).default("name"),
    limit: z.coerce.number().int().min(1).max(USERS_PAGE_MAX).default(USERS_PAGE_DEFAULT),
    cursor: z
      .string()
      .max(1_024)
      .refine((text) => parseCursor(text) !== undefined, "is no next_cursor of this list")
      .optional(),
  })
  .strict();

/** A checked query. */
export type UsersQuery = z.infer<typeof usersQuery>;

/** Behind which user a page begins. Users may come and go meanwhile: nobody is skipped or told twice who has not moved in the order. */
export interface UserPlace {
  readonly username: string;
  readonly usedShare: number;
}

/** By name. */
export function compareNames(a: UserPlace, b: UserPlace): number {
  return a.username < b.username ? -1 : a.username > b.username ? 1 : 0;
}

/** The fullest first, then by name. */
export function compareUsage(a: UserPlace, b: UserPlace): number {
  return b.usedShare - a.usedShare || compareNames(a, b);
}

/** The cursor behind a user. */
export function cursorBehind({ username, usedShare }: MergedUser): string {
  return Buffer.from(JSON.stringify([usedShare, username])).toString("base64url");
}

/** The place that a cursor tells of; undefined for what is no cursor. */
export function parseCursor(cursor: string): UserPlace | undefined {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (!Array.isArray(place) || place.length !== 2) return undefined;
    const [usedShare, username] = place as readonly unknown[];
    if (typeof usedShare !== "number" || typeof username !== "string") return undefined;
    return { username, usedShare };
  } catch {
    return undefined;
  }
}
