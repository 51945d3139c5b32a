// The query of GET /api/users, and the cursor between two pages (decision D5).
import { z } from "zod";
import { USERNAME_MAX_LENGTH } from "#base/limits.ts";
import type { MergedUser } from "./user-row.ts";

/** Users on one page of the list (decision D5). */
const USERS_PAGE_MAX = 500;
/** Default number of users on one page. */
const USERS_PAGE_DEFAULT = 100;

/** The query of GET /api/users. */
export const usersQuery = z
  .object({
    /** Part of a username, in any case. */
    q: z.string().max(USERNAME_MAX_LENGTH).optional(),
    /** The whole of a username: that user alone. */
    username: z.string().max(USERNAME_MAX_LENGTH).optional(),
    /** Id of a node; limits the list to users whose root lives there. */
    node: z.string().min(1).max(63).optional(),
    /** true: locked users only. */
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

/** The user after whom a page begins; changes neither skip nor repeat users that keep their place. */
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

/** The cursor after a user. */
export function cursorBehind({ username, usedShare }: MergedUser): string {
  return Buffer.from(JSON.stringify([usedShare, username])).toString("base64url");
}

/** The place in a cursor; undefined for an invalid one. */
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
