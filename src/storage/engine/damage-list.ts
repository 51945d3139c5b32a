// The damaged files of the roots held here, as PostgreSQL has them, asked for now and then.
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { DamagedFiles } from "#storage/contract/storage.ts";
import { FLAG_DAMAGED } from "#storage/metadata/schema.ts";
import { DAMAGED_FILES_LISTED } from "#storage/scrub/damage-reader.ts";
import type { SharedLine } from "#storage/shared/shared-line.ts";
import type { HeldRoots } from "./held-roots.ts";

/** How old the list may be: files may have got new content, or other roots have come. */
const LIST_MS = 30_000;

const DAMAGED = `(flags & ${FLAG_DAMAGED}) <> 0 AND (id >> 32) = ANY ($1)`;

/** The first files with their paths; one that waits for its purge has none. */
const LISTED = `
  WITH RECURSIVE up AS (
    SELECT id AS file, size, id, parent_id, name, '' COLLATE "C" AS path FROM (
      SELECT * FROM inode WHERE ${DAMAGED} ORDER BY id LIMIT ${DAMAGED_FILES_LISTED}
    ) damaged
    UNION ALL SELECT file, up.size, p.id, p.parent_id, p.name, '/' || up.name || up.path
      FROM up JOIN inode p ON p.id = up.parent_id
  )
  SELECT r.owner, coalesce(t.original_path, '') || up.path AS path, t.inode_id IS NOT NULL AS "isTrashed",
    file AS inode, up.size AS "sizeBytes"
  FROM up JOIN root r ON r.number = up.id >> 32 LEFT JOIN trash t ON t.inode_id = up.id
  WHERE up.parent_id IS NULL AND (r.directory_id = up.id OR t.inode_id IS NOT NULL) ORDER BY file`;

/** Keeps the list. */
export class DamageList {
  readonly #line: SharedLine;
  readonly #roots: Pick<HeldRoots, "all">;
  readonly #logger: Logger;
  readonly #stop: () => void;
  #files: DamagedFiles = { count: 0, listed: [] };
  #asking: Promise<void> | undefined;
  #isStale = false;

  constructor(deps: { line: SharedLine; roots: Pick<HeldRoots, "all">; clock: Clock; logger: Logger }) {
    this.#line = deps.line;
    this.#roots = deps.roots;
    this.#logger = deps.logger;
    this.#stop = deps.clock.every(LIST_MS, () => this.renew());
  }

  get files(): DamagedFiles {
    return this.#files;
  }

  /** Asks anew, once for all that has changed meanwhile. Never throws. */
  renew(): void {
    this.#isStale = true;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
  }

  async stop(): Promise<void> {
    this.#stop();
    this.#isStale = false;
    await this.#asking;
  }

  async #ask(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      const numbers = [...this.#roots.all()].map(({ number }) => number);
      try {
        this.#files = await this.#line.run(async (client) => {
          const counted = await client.query(`SELECT count(*) AS count FROM inode WHERE ${DAMAGED}`, [
            numbers,
          ]);
          const { count } = counted.rows[0] as { count: number };
          const listed = count === 0 ? [] : (await client.query(LISTED, [numbers])).rows;
          return { count, listed: listed as DamagedFiles["listed"] };
        });
      } catch (error) {
        this.#logger.warn("engine.damage_unknown", { error: errorText(error) });
        return;
      }
    }
  }
}
