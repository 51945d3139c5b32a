// A bare driver of batches: a root's counter, inodes and bytes in PostgreSQL, and one call for a group of files.
import pg from "pg";
import { crc32 } from "#os/crc32.ts";

/** A root's counter, its inodes and the bytes of small files, and one call that takes a group of them. */
const make = (schema: string): string => `
  CREATE SCHEMA ${schema};
  SET search_path TO ${schema};
  CREATE TABLE root (number BIGINT PRIMARY KEY, epoch BIGINT NOT NULL, batch BIGINT NOT NULL, live_bytes BIGINT NOT NULL)
    WITH (fillfactor = 50);
  INSERT INTO root VALUES (1, 1, 0, 0);
  CREATE TABLE inode (id BIGINT PRIMARY KEY, parent_id BIGINT NOT NULL, name TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL, crc32 BIGINT NOT NULL, mtime_ms BIGINT NOT NULL, UNIQUE (parent_id, name));
  CREATE TABLE content (inode_id BIGINT PRIMARY KEY, data BYTEA NOT NULL);
  CREATE FUNCTION take_group(p_batch BIGINT, p_parent BIGINT, p_ids BIGINT[], p_names TEXT[], p_crcs BIGINT[], p_data BYTEA[])
  RETURNS VOID LANGUAGE plpgsql AS $$ BEGIN
    UPDATE root SET batch = p_batch, live_bytes = live_bytes + (SELECT sum(length(d)) FROM unnest(p_data) d)
      WHERE number = 1 AND epoch = 1 AND batch = p_batch - 1;
    IF NOT FOUND THEN RAISE EXCEPTION 'another batch came between'; END IF;
    INSERT INTO inode SELECT n.id, p_parent, n.name, length(n.data), n.crc, 0
      FROM unnest(p_ids, p_names, p_crcs, p_data) AS n (id, name, crc, data);
    INSERT INTO content SELECT * FROM unnest(p_ids, p_data);
  END $$;`;

/** One connection, with a schema of its own. */
export class BareGroups {
  readonly #client: pg.Client;
  #batch = 0;
  #parent = 0;
  #lastId = 0;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  /** Connects and makes the tables. Throws what pg throws. */
  static async open(url: string, schema: string): Promise<BareGroups> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(make(schema));
    return new BareGroups(client);
  }

  /** Files from now on lie in another folder. */
  newFolder(): void {
    this.#parent = ++this.#lastId;
  }

  /** Takes files, in a commit of their own. Call it again only after its end, as the epoch's guard demands. */
  async take(files: readonly Uint8Array[]): Promise<void> {
    const ids = files.map(() => ++this.#lastId);
    const names = ids.map((id) => `file-${id}`);
    const crcs = files.map((data) => crc32(data));
    const group = [++this.#batch, this.#parent, ids, names, crcs, files];
    await this.#client.query("SELECT take_group($1, $2, $3, $4, $5, $6)", group);
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}
