// Remembers what users were told, so that each hears of a kind once a day at most, also over restarts.
import { createHash } from "node:crypto";
import { z } from "zod";
import { DAY_MS } from "#base/duration.ts";
import type { UserNoticeKind } from "./user-notice.ts";

/** Users that are remembered; beyond, those who were not heard of for longest are forgotten. */
export const USER_NOTICE_BOOK_MAX = 50_000;
/** Places of sign-ins that are remembered of each user. */
export const SIGN_IN_PLACES_MAX = 8;
/** Users are told of old trash this long before it is deleted. */
const TRASH_NOTICE_MS: number = 7 * DAY_MS;
/** No user is told of old trash more often; a day before the end there was one for each item. */
const TRASH_AGAIN_MS: number = 6 * DAY_MS;
/** A level that stays is told again after this time. */
const LEVEL_AGAIN_MS: number = 7 * DAY_MS;
/** A level counts as left this many percent below it, so that nobody hears of every change around it. */
const LEVEL_LEFT_PERCENT = 5n;
const PLACE_LENGTH = 12;

/** Levels of a quota in percent, the highest first. */
const LEVELS = [
  { percent: 100, kind: "quota_full" },
  { percent: 95, kind: "quota_95" },
  { percent: 80, kind: "quota_80" },
] as const;

const record = z.object({
  /** The highest level that was told and not left since. */
  level: z.int().optional(),
  /** Wall time of the last notice of each kind. */
  told: z.record(z.string(), z.number()),
  places: z.array(z.string()).optional(),
});
type Record = z.infer<typeof record>;

/** The book as it is kept, those heard of last at the end. */
export const storedBook = z.object({ users: z.array(z.tuple([z.string(), record])) });

/** The book as it is kept. */
export type StoredBook = z.infer<typeof storedBook>;

/** What each user was told. */
export class UserNoticeBook {
  readonly #users: Map<string, Record>;
  readonly #capacity: number;

  constructor(kept: StoredBook | undefined, capacity: number = USER_NOTICE_BOOK_MAX) {
    this.#users = new Map(kept?.users);
    this.#capacity = capacity;
  }

  /** True for somebody of whom something is remembered. */
  knows(owner: string): boolean {
    return this.#users.has(owner);
  }

  /** The notice that a usage calls for now, which counts as told; undefined for none. */
  quota(owner: string, usedBytes: bigint, quotaBytes: bigint, wallMs: number): UserNoticeKind | undefined {
    if (quotaBytes <= 0n) return undefined;
    const before = this.#users.get(owner);
    const reached = (percent: bigint): boolean => usedBytes * 100n >= quotaBytes * percent;
    const now = LEVELS.find(({ percent }) => reached(BigInt(percent)));
    const told = before?.level ?? 0;
    if (now === undefined || now.percent < told) {
      const held = LEVELS.find(({ percent }) => reached(BigInt(percent) - LEVEL_LEFT_PERCENT));
      const level = Math.min(told, held?.percent ?? 0);
      if (before !== undefined && level !== told) this.#put(owner, { ...before, level }, wallMs);
      return undefined;
    }
    const again = now.percent === told ? LEVEL_AGAIN_MS : DAY_MS;
    if (isWithin(before?.told[now.kind], again, wallMs)) return undefined;
    this.#tell(owner, now.kind, { level: now.percent }, wallMs);
    return now.kind;
  }

  /** True when a user is to be told now that old trash is deleted then; it counts as told. */
  trash(owner: string, expiresMs: number, wallMs: number): boolean {
    if (expiresMs - wallMs > TRASH_NOTICE_MS) return false;
    if (isWithin(this.#users.get(owner)?.told["trash"], TRASH_AGAIN_MS, wallMs)) return false;
    this.#tell(owner, "trash", {}, wallMs);
    return true;
  }

  /** True for a sign-in from a place that is not remembered, unless one was told within a day. */
  signIn(username: string, place: string, wallMs: number): boolean {
    const before = this.#users.get(username);
    const known = before?.places ?? [];
    const id = createHash("sha256").update(place).digest("base64url").slice(0, PLACE_LENGTH);
    const isNew = !known.includes(id);
    const isTold = isNew && !isWithin(before?.told["sign_in"], DAY_MS, wallMs);
    // A place that nobody was told of stays new.
    if (isNew && !isTold) return false;
    const places = [...known.filter((other) => other !== id), id].slice(-SIGN_IN_PLACES_MAX);
    if (isTold) this.#tell(username, "sign_in", { places }, wallMs);
    else this.#put(username, { ...before, told: before?.told ?? {}, places }, wallMs);
    return isTold;
  }

  /** All of it. */
  kept(): StoredBook {
    return { users: [...this.#users] };
  }

  #tell(owner: string, kind: UserNoticeKind, more: Partial<Record>, wallMs: number): void {
    const before = this.#users.get(owner);
    this.#put(owner, { ...before, ...more, told: { ...before?.told, [kind]: wallMs } }, wallMs);
  }

  #put(owner: string, { level = 0, told, places = [] }: Record, wallMs: number): void {
    this.#users.delete(owner);
    const recent = Object.fromEntries(
      Object.entries(told).filter(([, atMs]) => isWithin(atMs, LEVEL_AGAIN_MS, wallMs)),
    );
    if (level === 0 && places.length === 0 && Object.keys(recent).length === 0) return;
    this.#users.set(owner, {
      ...(level === 0 ? {} : { level }),
      told: recent,
      ...(places.length === 0 ? {} : { places }),
    });
    const oldest = this.#users.keys().next();
    if (this.#users.size > this.#capacity && oldest.done !== true) this.#users.delete(oldest.value);
  }
}

/** True when a moment is less than a time ago; one far ahead, of a clock that was wrong, does not count. */
function isWithin(atMs: number | undefined, spanMs: number, wallMs: number): boolean {
  return atMs !== undefined && Math.abs(wallMs - atMs) < spanMs;
}
