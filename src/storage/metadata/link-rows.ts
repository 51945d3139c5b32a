// Rows of links as the writer keeps them, and what was counted for each (docs/design.md, links).
import { createHash } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type InodeId, ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { NewLink } from "#storage/contract/links.ts";
import type { LockRows } from "./lock-rows.ts";
import type { RootState } from "./unit-of-work.ts";

/** What limits a link, and what was counted. */
export interface LinkCounts {
  readonly inodeId: InodeId;
  readonly kind: string;
  readonly endsMs: number;
  readonly maxDownloads: number;
  readonly maxBytes: number;
  readonly maxFiles: number;
  readonly downloads: number;
  readonly bytes: number;
  readonly files: number;
  readonly recent: string;
}

const COUNTS = `inode_id AS inodeId, kind, ends_ms AS endsMs, max_downloads AS maxDownloads, max_bytes AS maxBytes,
  max_files AS maxFiles, downloads, bytes, files, recent`;

/** For so long parts of a file count as the download that a visitor began. */
export const DOWNLOAD_SESSION_MS = 3_600_000;
/** Downloads that are remembered for each link; the oldest counts anew. */
export const RECENT_DOWNLOADS = 256;
/** Requests that are remembered of one visitor and file, so that one visitor leaves room for others. */
const REQUESTS_PER_KEY = 8;

/** Statements on links. */
export class LinkRows {
  readonly #locks: Pick<LockRows, "within">;
  readonly #ofRoot: StatementSync;
  readonly #countOf: StatementSync;
  readonly #insert: StatementSync;
  readonly #delete: StatementSync;
  readonly #deleteOf: StatementSync;
  readonly #counts: StatementSync;
  readonly #download: StatementSync;
  readonly #drop: StatementSync;

  constructor(db: DatabaseSync, locks: Pick<LockRows, "within">) {
    this.#locks = locks;
    this.#ofRoot = db.prepare("SELECT id, inode_id AS inodeId FROM link WHERE root_number = ?");
    this.#countOf = db.prepare("SELECT count(*) AS count FROM link WHERE root_number = ?");
    this.#insert = db.prepare(
      `INSERT INTO link (id, root_number, inode_id, token_hash, kind, password, pass_key, created_ms, ends_ms,
         max_downloads, max_bytes, max_files) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#delete = db.prepare("DELETE FROM link WHERE id = ? AND root_number = ?");
    this.#deleteOf = db.prepare("DELETE FROM link WHERE root_number = ? AND inode_id = ?");
    this.#counts = db.prepare(`SELECT ${COUNTS} FROM link WHERE id = ? AND root_number = ?`);
    this.#download = db.prepare("UPDATE link SET downloads = downloads + 1, recent = ? WHERE id = ?");
    this.#drop = db.prepare(
      "UPDATE link SET bytes = max(0, bytes + ?), files = max(0, files + ?) WHERE id = ?",
    );
  }

  /** How many links a root has. */
  count(root: RootState): number {
    return (this.#countOf.get(root.number) as { count: number }).count;
  }

  add(root: RootState, link: NewLink, createdMs: number): void {
    const { id, inodeId, tokenHash, kind, password, passKey, endsMs } = link;
    const { maxDownloads, maxBytes, maxFiles } = link;
    const secrets = [tokenHash, kind, password, passKey] as const;
    this.#insert.run(
      id,
      root.number,
      inodeId,
      ...secrets,
      createdMs,
      endsMs,
      maxDownloads,
      maxBytes,
      maxFiles,
    );
  }

  /** False where the root has none with that id. */
  remove(root: RootState, id: string): boolean {
    return Number(this.#delete.run(id, root.number).changes) > 0;
  }

  /** Ends the links of an inode, and of everything below it where there may be anything. */
  dropBelow(root: RootState, inodeId: InodeId, hasEntries: boolean): void {
    this.#deleteOf.run(root.number, inodeId);
    if (!hasEntries) return;
    const isWithin = this.#locks.within(inodeId);
    for (const link of this.#ofRoot.all(root.number) as { id: string; inodeId: InodeId }[]) {
      if (isWithin(link.inodeId)) this.remove(root, link.id);
    }
  }

  /** Undefined where the root has none with that id. */
  counts(root: RootState, id: string): LinkCounts | undefined {
    return this.#counts.get(id, root.number) as LinkCounts | undefined;
  }

  /** Counts a download and remembers the visitor's. */
  addDownload(id: string, recent: RecentDownloads): void {
    this.#download.run(recent.text(), id);
  }

  /** Counts a dropped file, or takes it back. */
  addDrop(id: string, bytes: number, files: 1 | -1): void {
    this.#drop.run(bytes, files, id);
  }
}

/** A download that was counted; those of earlier releases have no mark of their request. */
type Recent = readonly [key: string, atMs: number, mark?: string];

/** The last downloads of a link's visitors. */
export class RecentDownloads {
  #entries: Recent[];

  /** Reads what a row holds, without what is too old to matter. */
  constructor(text: string, nowMs: number) {
    const entries = JSON.parse(text) as Recent[];
    this.#entries = entries.filter(([, atMs]) => Math.abs(nowMs - atMs) < DOWNLOAD_SESSION_MS);
  }

  has(key: string): boolean {
    return this.#entries.some(([other]) => other === key);
  }

  /** True where that request of the key was counted; an empty mark is no request's. */
  hasRequest(key: string, mark: string): boolean {
    return mark !== "" && this.#entries.some(([other, , request]) => other === key && request === mark);
  }

  /** Keeps the other requests of the key, which may be repeated as well. */
  add(key: string, atMs: number, mark: string): void {
    const others = this.#entries.filter(([other, , request]) => other !== key || (request ?? "") !== mark);
    const outdated = others.filter(([other]) => other === key).slice(0, 1 - REQUESTS_PER_KEY);
    const kept = others.filter((entry) => !outdated.includes(entry));
    this.#entries = [...kept, [key, atMs, mark] as const].slice(-RECENT_DOWNLOADS);
  }

  text(): string {
    return JSON.stringify(this.#entries);
  }
}

/** What a visitor's download of a file is remembered by; the same after the root has moved. */
export function downloadKey(visitor: string, inodeId: InodeId): string {
  return shortHash(`${visitor} ${inodeId % ROOT_STRIDE}`);
}

/** What a request is remembered by, of bounded length; empty for none. */
export function requestMark(requestKey: string): string {
  return requestKey === "" ? "" : shortHash(requestKey);
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}
