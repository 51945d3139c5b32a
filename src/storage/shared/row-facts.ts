// What the row cache knows: an absent row counts only where the database was asked, or cannot have one.
import type { StatementSync } from "node:sqlite";
import { ROOT_STRIDE, rootNumberOf } from "#storage/contract/inode.ts";

/** Something that the database is asked for: with its rows in the cache, what is not there does not exist. */
export type Fact =
  /** A root by its owner, with everything of it that is few: grants, locks, links, uploads, staged and detached things. */
  | { readonly kind: "root"; readonly owner: string }
  /** The same by its number. */
  | { readonly kind: "number"; readonly id: number }
  /** An inode, and the directories above it. */
  | { readonly kind: "inode"; readonly id: number }
  /** The entry of a directory with a name. */
  | { readonly kind: "name"; readonly id: number; readonly name: string }
  /** Everything on a path that was there once: later reads ask for what has changed. */
  | { readonly kind: "path"; readonly owner: string; readonly names: readonly string[] }
  /** All entries of a directory. */
  | { readonly kind: "children"; readonly id: number }
  /** The entries of a directory that have directories below them. */
  | { readonly kind: "heights"; readonly id: number }
  /** What programs keep with an inode. */
  | { readonly kind: "properties"; readonly id: number }
  /** The bytes of a small file. */
  | { readonly kind: "inline"; readonly id: number }
  /** A chunk list, with its chunks. */
  | { readonly kind: "list"; readonly id: number }
  /** The LIST_PART positions of a chunk list from a multiple of that on, with their chunks. */
  | { readonly kind: "part"; readonly id: number; readonly from: number }
  /** The first LIST_START positions of a chunk list from one on, with their chunks. */
  | { readonly kind: "start"; readonly id: number; readonly from: number }
  /** All positions of a chunk list before one. */
  | { readonly kind: "reach"; readonly id: number; readonly from: number }
  /** A chunk. */
  | { readonly kind: "chunk"; readonly id: number }
  /** The files that use a chunk. */
  | { readonly kind: "users"; readonly id: number }
  /** All items of a root's trash, by the root's number. */
  | { readonly kind: "trashes"; readonly id: number }
  /** An item of a root's trash, with its former shares. */
  | { readonly kind: "trash"; readonly id: number; readonly item: string };

/** Thrown by a command that needs rows which are not in the cache; it has changed nothing then. */
export class RowsMissing extends Error {
  override readonly name = "RowsMissing";
  readonly fact: Fact;

  constructor(fact: Fact) {
    super(`rows are missing: ${fact.kind}`);
    this.fact = fact;
  }
}

/** Positions of a chunk list that are fetched together where only some are asked for: 256 MB of a file. */
export const LIST_PART = 64;

/** Positions of a chunk list that are fetched together where those at its beginning are wanted: to remove them. */
export const LIST_START = 1_024;

/** The table of facts. It has no primary key, so that a session does not take them for changes. */
export const FACTS_TABLE = `
  CREATE TABLE fetched (kind TEXT NOT NULL, id INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
  CREATE UNIQUE INDEX fetched_once ON fetched (kind, id, text);`;

/** Words of a fact in the table: kind, number and text. */
type Words = [kind: string, id: number, text: string];

/** Entries of a directory that may come for each of its names that was asked for. */
const ENTRIES_FOR_A_NAME = 32;
/** Most entries that come where only names were asked for. */
const WHOLE_DIRECTORY_MAX = 4_096;

/** The facts of a cache. They lie in its database, so that a command that is undone takes its own back. */
export class RowFacts {
  readonly #known: StatementSync;
  readonly #add: StatementSync;
  readonly #nextId: StatementSync;
  readonly #childCount: StatementSync;
  readonly #namesAsked: StatementSync;
  readonly #reach: StatementSync;
  readonly #version: () => number;
  readonly #nextIds = new Map<number, number>();
  /** Directories that were found to be whole in this version; asked for with each name in them. */
  readonly #whole = new Set<number>();
  #ofVersion = -1;

  /** `version` rises whenever what the database holds may have changed. */
  constructor(prepare: (sql: string) => StatementSync, { version }: { readonly version: () => number }) {
    this.#version = version;
    this.#known = prepare("SELECT 1 FROM fetched WHERE kind = ? AND id = ? AND text = ?");
    this.#add = prepare("INSERT INTO fetched (kind, id, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING");
    this.#nextId = prepare("SELECT next_id AS nextId FROM root WHERE number = ?");
    this.#childCount = prepare("SELECT child_count AS count FROM inode WHERE id = ?");
    this.#reach = prepare(
      "SELECT max(CAST(text AS INTEGER)) AS reach FROM fetched WHERE kind = 'reach' AND id = ?",
    );
    this.#namesAsked = prepare("SELECT count(*) AS count FROM fetched WHERE kind = 'name' AND id = ?");
  }

  /** Begins a group: numbers that roots had not given out by then belong to nothing in the database. */
  begin(): void {
    const version = this.#version();
    if (version === this.#ofVersion) return;
    this.#ofVersion = version;
    this.#nextIds.clear();
    this.#whole.clear();
  }

  /** Throws RowsMissing unless the fact is known. */
  require(fact: Fact): void {
    if (!this.#isKnown(fact)) throw new RowsMissing(fact);
  }

  /** True when what the fact is about is whole here. */
  knows(fact: Fact): boolean {
    return this.#isKnown(fact);
  }

  /**
   * What to fetch for these facts: a directory as a whole in place of its names, once they are many enough for
   * its entries. What is made in it afterwards is known to be new, and waits for no fetch.
   */
  widened(facts: readonly Fact[]): Fact[] {
    const asked = new Map<number, number>();
    for (const fact of facts) {
      if (fact.kind === "name") asked.set(fact.id, (asked.get(fact.id) ?? 0) + 1);
    }
    const whole = new Set([...asked].flatMap(([id, names]) => (this.#isWorthAll(id, names) ? [id] : [])));
    const others = facts.filter((fact) => fact.kind !== "name" || !whole.has(fact.id));
    return [...others, ...[...whole].map((id): Fact => ({ kind: "children", id }))];
  }

  #isWorthAll(directory: number, names: number): boolean {
    const known = this.#childCount.get(directory) as { count: number } | undefined;
    if (known === undefined || known.count > WHOLE_DIRECTORY_MAX) return false;
    const before = this.#namesAsked.get(directory) as { count: number };
    return known.count <= (before.count + names) * ENTRIES_FOR_A_NAME;
  }

  /** The position before which a chunk list is known to be whole; all of it is where the list's fact is known. */
  reachOf(list: number): number {
    return (this.#reach.get(list) as { reach: number | null }).reach ?? 0;
  }

  /** Records a fact. */
  add(fact: Fact): void {
    this.#add.run(...wordsOf(fact));
  }

  /** True for the number of an inode or list that the group itself has made. */
  isNew(id: number): boolean {
    const root = rootNumberOf(id);
    let next = this.#nextIds.get(root);
    if (next === undefined) {
      const row = this.#nextId.get(root) as { nextId: number } | undefined;
      next = row?.nextId ?? Number.POSITIVE_INFINITY;
      this.#nextIds.set(root, next);
    }
    return id % ROOT_STRIDE >= next;
  }

  #isKnown(fact: Fact): boolean {
    return this.#isImplied(fact) || this.#known.get(...wordsOf(fact)) !== undefined;
  }

  #isWhole(directory: number): boolean {
    if (this.#whole.has(directory)) return true;
    const isWhole = this.#isKnown({ kind: "children", id: directory });
    if (isWhole) this.#whole.add(directory);
    return isWhole;
  }

  /** True where a larger fact says it, or where there can be nothing. */
  #isImplied(fact: Fact): boolean {
    switch (fact.kind) {
      case "name":
      case "heights":
        return this.#isWhole(fact.id);
      case "trash":
        return this.#isKnown({ kind: "trashes", id: fact.id });
      case "inode":
      case "children":
      case "inline":
      case "properties":
      case "list":
        return this.isNew(fact.id);
      case "part":
        return this.#isKnown({ kind: "list", id: fact.id });
      case "start":
        return this.reachOf(fact.id) > fact.from || this.#isKnown({ kind: "list", id: fact.id });
      default:
        return false;
    }
  }
}

function wordsOf(fact: Fact): Words {
  if (fact.kind === "root") return [fact.kind, 0, fact.owner];
  if (fact.kind === "path") return [fact.kind, 0, JSON.stringify([fact.owner, ...fact.names])];
  if (fact.kind === "name") return [fact.kind, fact.id, fact.name];
  if ("from" in fact) return [fact.kind, fact.id, String(fact.from)];
  return [fact.kind, fact.id, fact.kind === "trash" ? fact.item : ""];
}
