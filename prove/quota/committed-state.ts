// Reads the database in one snapshot: every committed state must be right, not only those that clients see.
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { DATABASE_FILE } from "#storage/metadata/schema.ts";

/** A root as one transaction has left it. Bytes. */
export interface CommittedRoot {
  readonly liveBytes: number;
  readonly trashBytes: number;
  readonly stagingBytes: number;
  /** Sum of the root's directory, which every change below moves. */
  readonly treeBytes: number;
  /** Sum of the files that hang directly in the root's directory, row by row. */
  readonly fileBytes: number;
  /** Sum of what lies in the trash, row by row. */
  readonly trashedBytes: number;
}

const LOOK = `SELECT live_bytes AS liveBytes, trash_bytes AS trashBytes, staging_bytes AS stagingBytes, directory.size AS treeBytes,
    (SELECT total(size) FROM inode WHERE parent_id = directory.id) AS fileBytes,
    (SELECT total(inode.size) FROM trash JOIN inode ON inode.id = trash.inode_id WHERE trash.root_number = root.number) AS trashedBytes
  FROM root JOIN inode AS directory ON directory.id = root.directory_id WHERE owner = ?`;

/** A reader beside the server, which it does not hinder. */
export class CommittedState {
  readonly #db: DatabaseSync;
  readonly #look: StatementSync;

  constructor(dataFolder: string) {
    this.#db = new DatabaseSync(join(dataFolder, DATABASE_FILE), { readOnly: true, timeout: 5_000 });
    this.#look = this.#db.prepare(LOOK);
  }

  /**
   * Reads one root now.
   * @throws Error when there is none
   */
  look(owner: string): CommittedRoot {
    const row = this.#look.get(owner);
    if (row === undefined) throw new Error(`${owner} has no root`);
    return row as unknown as CommittedRoot;
  }

  close(): void {
    this.#db.close();
  }
}

/** Returns the fault of a committed root; undefined when its counters are the sums of its rows. */
export function driftOf(root: CommittedRoot): string | undefined {
  const { liveBytes, treeBytes, fileBytes, trashBytes, trashedBytes } = root;
  if (liveBytes === treeBytes && treeBytes === fileBytes && trashBytes === trashedBytes) return undefined;
  return `counted ${liveBytes} live and ${trashBytes} in the trash, directory ${treeBytes}, rows ${fileBytes} and ${trashedBytes}`;
}
