// Levels below each directory, from which a move knows without a walk how deep its tree would lie.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { PATH_MAX_BYTES } from "#base/limits.ts";
import type { DirectoryState, Ledger } from "./unit-of-work.ts";

/** Levels of directories below a root: as many as the longest path can name (decision D13). */
export const DIRECTORY_DEPTH_MAX: number = PATH_MAX_BYTES / 2;

/**
 * Keeps `height`: 0 of a file or empty directory, else one more than the highest entry. It is written to the
 * row at once, since queries look for the highest entry there.
 */
export class TreeHeights {
  readonly #ledger: Ledger;
  readonly #update: StatementSync;
  readonly #highest: StatementSync;

  constructor(db: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#update = db.prepare("UPDATE inode SET height = ? WHERE id = ?");
    this.#highest = db.prepare(
      "SELECT height FROM inode WHERE parent_id = ? AND height > 0 ORDER BY height DESC LIMIT 1",
    );
  }

  /** Sets a known height. */
  set(state: DirectoryState, height: number): void {
    if (state.height === height) return;
    this.#ledger.touch(state);
    state.height = height;
    this.#update.run(height, state.id);
  }

  /** Updates heights after an entry was added to a chain's first directory. */
  came(chain: readonly DirectoryState[], entryHeight: number): void {
    let height = entryHeight;
    for (const state of chain) {
      if (state.height > height) return;
      this.set(state, ++height);
    }
  }

  /** Updates heights after an entry left a chain's first directory, its rows and its count of entries. */
  went(chain: readonly DirectoryState[], entryHeight: number): void {
    let before = entryHeight;
    let child: DirectoryState | undefined;
    for (const state of chain) {
      if (state.height > before + 1) return;
      const height = this.#heightNow(state, child);
      if (height === state.height) return;
      before = state.height;
      this.set(state, height);
      child = state;
    }
  }

  /** `child` is an entry that certainly exists. */
  #heightNow({ id, childCount }: DirectoryState, child: DirectoryState | undefined): number {
    if (childCount === 0) return 0;
    if (childCount === 1 && child !== undefined) return child.height + 1;
    const row = this.#highest.get(id) as { height: number } | undefined;
    return (row?.height ?? 0) + 1;
  }
}

/**
 * Throws BAD_ARGUMENT when an entry of a chain's first directory would lie deeper than directories may (D13).
 * A tree that is already too deep may move to any place no deeper than `formerDepth`, the depth of its top.
 */
export function requireDepth(
  chain: readonly DirectoryState[],
  entryHeight: number,
  formerDepth: number,
): void {
  const depth = chain.length;
  if (depth + entryHeight <= DIRECTORY_DEPTH_MAX || depth <= formerDepth) return;
  throw tooDeep(depth + entryHeight);
}

/** The refusal of so many levels below a root. */
export function tooDeep(depth: number): GroveError {
  return new GroveError(
    "BAD_ARGUMENT",
    `files and directories lie at most ${DIRECTORY_DEPTH_MAX} levels deep, and this would be ${depth}; choose a place higher up`,
    { metadata: { limit: String(DIRECTORY_DEPTH_MAX) } },
  );
}
