// Keeps the pages of an unfinished registration in the store until its last one takes them all (D19).
import { GroveError } from "#base/errors.ts";
import { HEARTBEAT_INTERVAL_MS } from "#base/limits.ts";
import { all, get, type Plan, run } from "#metaserver/sql/sql-plan.ts";
import type { HeldRoot, NodeRegistration, RegistrationPage } from "./directory.ts";

/** Pages of one registration: more roots than a data directory holds. */
const REGISTRATION_PAGES_MAX = 512;
/** Pages of all unfinished registrations that the metadata store keeps; more are answered OVERLOADED. */
const REGISTRATION_PAGES_KEPT = 2_048;
/** How long the pages of an unfinished registration are kept. */
export const REGISTRATION_PAGES_TTL_MS: number = 10 * 60_000;

/** A registration with a page. */
export type PagedRegistration = NodeRegistration & { readonly page: RegistrationPage };

type Process = Pick<NodeRegistration, "fsId" | "instanceId">;

/** True for a page; a whole registration has none. */
export function isPaged(registration: NodeRegistration): registration is PagedRegistration {
  return registration.page !== undefined;
}

/** The progress of a registration. */
export interface Staged {
  /** The next missing page. */
  readonly nextPage: number;
  /** True for the last page when all before it are there. */
  readonly isWhole: boolean;
}

/**
 * Keeps a page, unless it is the last. A repeated or early page, or one of an earlier registration, changes
 * nothing. Throws BAD_ARGUMENT for an impossible page, OVERLOADED while too many are kept.
 */
export function* stagePage(nowWallMs: number, registration: PagedRegistration): Plan<Staged> {
  const { fsId, instanceId, page: at } = registration;
  if (at.page >= REGISTRATION_PAGES_MAX) {
    throw new GroveError("BAD_ARGUMENT", `a registration has at most ${REGISTRATION_PAGES_MAX} pages`);
  }
  yield* run(
    "DELETE FROM staged_pages WHERE begun_ms < ? OR begun_ms > ?",
    nowWallMs - REGISTRATION_PAGES_TTL_MS,
    nowWallMs + REGISTRATION_PAGES_TTL_MS,
  );
  const kept = yield* get<{ registration: bigint | null; begun_ms: bigint | null; pages: bigint }>(
    "SELECT MAX(registration) AS registration, MIN(begun_ms) AS begun_ms, COUNT(*) AS pages FROM staged_pages WHERE fs_id = ? AND instance_id = ?",
    fsId,
    instanceId,
  );
  let pages = Number(kept?.pages ?? 0n);
  const current = kept?.registration ?? 0n;
  if (current > at.registration) return { nextPage: pages, isWhole: false };
  if (current < at.registration) {
    yield* run("DELETE FROM staged_pages WHERE fs_id = ? AND instance_id = ?", fsId, instanceId);
    pages = 0;
  }
  if (at.page !== pages || at.isLast) return { nextPage: pages, isWhole: at.page === pages };
  if (pages === 0) yield* forgetAllButLatestOther(registration);
  yield* requireRoom();
  yield* run(
    "INSERT INTO staged_pages (fs_id, instance_id, registration, page, roots, begun_ms) VALUES (?, ?, ?, ?, ?, ?)",
    fsId,
    instanceId,
    at.registration,
    at.page,
    toText(registration.roots),
    // All pages of a registration expire together.
    pages === 0 ? nowWallMs : (kept?.begun_ms ?? nowWallMs),
  );
  return { nextPage: pages + 1, isWhole: false };
}

/** One kept page. */
export function* stagedPage({ fsId, instanceId }: Process, page: number): Plan<HeldRoot[]> {
  const row = yield* get<{ roots: string }>(
    "SELECT roots FROM staged_pages WHERE fs_id = ? AND instance_id = ? AND page = ?",
    fsId,
    instanceId,
    page,
  );
  return row === undefined ? [] : fromText(row.roots);
}

/** Drops the pages of a registered node. */
export function* forgetStaged(fsId: string): Plan<void> {
  yield* run("DELETE FROM staged_pages WHERE fs_id = ?", fsId);
}

/**
 * Keeps the pages of the two latest processes: a gone one may have left pages, and a present one may be older
 * than the sender.
 */
function* forgetAllButLatestOther({ fsId, instanceId }: Process): Plan<void> {
  const others = yield* all<{ instance_id: string }>(
    `SELECT instance_id FROM staged_pages WHERE fs_id = ? AND instance_id <> ? AND page = 0 ORDER BY begun_ms DESC LIMIT 10`,
    fsId,
    instanceId,
  );
  for (const { instance_id: other } of others.slice(1)) {
    yield* run("DELETE FROM staged_pages WHERE fs_id = ? AND instance_id = ?", fsId, other);
  }
}

function* requireRoom(): Plan<void> {
  const kept = yield* get<{ count: bigint }>("SELECT COUNT(*) AS count FROM staged_pages");
  if (kept === undefined || kept.count < REGISTRATION_PAGES_KEPT) return;
  throw new GroveError("OVERLOADED", "too many nodes are listing their roots at once; try again", {
    metadata: { retry_after_ms: String(HEARTBEAT_INTERVAL_MS) },
  });
}

type StoredRoot = readonly [
  owner: string,
  rootId: string,
  version: string,
  granted: readonly (readonly [string, string])[],
  issuer?: string,
  subject?: string,
  subjectVersion?: string,
  /** Empty for none. */
  leaseEpoch?: string,
  arrival?: string,
];

function toText(roots: readonly HeldRoot[]): string {
  return JSON.stringify(
    roots.map(({ owner, rootId, version, grants, subject, leaseEpoch, arrival }) => {
      const granted = grants.map(({ path, user }) => [path, user]);
      const root = [owner, rootId, String(version), granted];
      if (subject === undefined && leaseEpoch === undefined && arrival === undefined) return root;
      const { issuer = "", subject: id = "", version: told = 0n } = subject ?? {};
      const person = [issuer, id, String(told)];
      if (arrival !== undefined) return [...root, ...person, String(leaseEpoch ?? ""), arrival];
      return [...root, ...person, ...(leaseEpoch === undefined ? [] : [String(leaseEpoch)])];
    }),
  );
}

function fromText(text: string): HeldRoot[] {
  return (JSON.parse(text) as StoredRoot[]).map(
    ([owner, rootId, version, granted, issuer = "", subject = "", told = "0", leaseEpoch = "", arrival]) => ({
      owner,
      rootId,
      version: BigInt(version),
      grants: granted.map(([path, user]) => ({ path, user })),
      subject: subject === "" ? undefined : { issuer, subject, version: BigInt(told) },
      ...(leaseEpoch === "" ? {} : { leaseEpoch: BigInt(leaseEpoch) }),
      ...(arrival === undefined ? {} : { arrival }),
    }),
  );
}
