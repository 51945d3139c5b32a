// Reads the database in one snapshot: every committed state must be right, not only those that clients see.
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type pg from "pg";
import { DATABASE_FILE } from "#storage/metadata/schema.ts";
import { connectShared, type SharedAddress } from "#storage/shared/shared-connection.ts";

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

const LOOK = `SELECT live_bytes AS "liveBytes", trash_bytes AS "trashBytes", staging_bytes AS "stagingBytes", directory.size AS "treeBytes",
    (SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM inode WHERE parent_id = directory.id) AS "fileBytes",
    (SELECT CAST(coalesce(sum(inode.size), 0) AS BIGINT) FROM trash JOIN inode ON inode.id = trash.inode_id WHERE trash.root_number = root.number) AS "trashedBytes"
  FROM root JOIN inode AS directory ON directory.id = root.directory_id WHERE owner = `;

/** A reader beside the server, which it does not hinder. */
export interface CommittedState {
  /**
   * Reads one root now.
   * @throws Error when there is none
   */
  look(owner: string): Promise<CommittedRoot>;
  close(): unknown;
}

/** That of a data folder. */
export class FolderState implements CommittedState {
  readonly #db: DatabaseSync;
  readonly #look: StatementSync;

  constructor(dataFolder: string) {
    this.#db = new DatabaseSync(join(dataFolder, DATABASE_FILE), { readOnly: true, timeout: 5_000 });
    this.#look = this.#db.prepare(`${LOOK} ?`);
  }

  look(owner: string): Promise<CommittedRoot> {
    return Promise.resolve(rootOf(owner, this.#look.get(owner)));
  }

  close(): void {
    this.#db.close();
  }
}

/** That of a shared engine: each look is one statement, and so one snapshot. */
export class EngineState implements CommittedState {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async open(address: SharedAddress): Promise<EngineState> {
    return new EngineState(await connectShared(address));
  }

  async look(owner: string): Promise<CommittedRoot> {
    const { rows } = await this.#client.query({ name: "look", text: `${LOOK} $1`, values: [owner] });
    return rootOf(owner, rows[0]);
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}

function rootOf(owner: string, row: unknown): CommittedRoot {
  if (row === undefined) throw new Error(`${owner} has no root`);
  return row as CommittedRoot;
}

/** Returns the fault of a committed root; undefined when its counters are the sums of its rows. */
export function driftOf(root: CommittedRoot): string | undefined {
  const { liveBytes, treeBytes, fileBytes, trashBytes, trashedBytes } = root;
  if (liveBytes === treeBytes && treeBytes === fileBytes && trashBytes === trashedBytes) return undefined;
  return `counted ${liveBytes} live and ${trashBytes} in the trash, directory ${treeBytes}, rows ${fileBytes} and ${trashedBytes}`;
}
