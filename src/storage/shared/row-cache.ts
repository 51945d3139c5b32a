// The rows of held roots in an SQLite database of this machine: a cache of PostgreSQL's, with the commands'
// own SQL.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { BUSY_TIMEOUT_MS, migrate } from "#storage/metadata/schema.ts";
import { changedRows } from "./row-changes.ts";
import { FACTS_TABLE, type Fact, RowFacts } from "./row-facts.ts";
import { guard } from "./row-guards.ts";
import { RowsAhead } from "./rows-ahead.ts";
import { SHARED_TABLES } from "./shared-tables.ts";
import {
  insertJson,
  type JsonRow,
  keyColumns,
  type TableEffects,
  type TableStatements,
  tableStatements,
} from "./table-rows.ts";

/** Rows of the database with the facts that they make known. */
export interface FetchedRows {
  readonly facts: readonly Fact[];
  readonly rows: readonly JsonRow[];
}

/** Says why a statement cannot be prepared, or prepares it with its guard. */
class GuardedDatabase extends DatabaseSync {
  facts: RowFacts | undefined;

  override prepare(sql: string): StatementSync {
    const { facts } = this;
    if (facts === undefined) return super.prepare(sql);
    return guard(sql, super.prepare(sql), facts, (plain) => super.prepare(plain));
  }

  /** For the cache itself, which knows what it asks for. */
  preparePlain(sql: string): StatementSync {
    return super.prepare(sql);
  }
}

/**
 * Commands run in a transaction of this database. What they have changed goes to PostgreSQL before it is
 * committed here, so that the cache never holds more than PostgreSQL. It is made anew with each process.
 */
export class RowCache {
  readonly facts: RowFacts;
  readonly #path: string;
  readonly #db: GuardedDatabase;
  readonly #tables: ReadonlyMap<string, TableStatements>;
  readonly #ahead: RowsAhead;
  readonly #blind: StatementSync;
  readonly #forgetBlind: StatementSync;

  /** `firstId` begins the range of numbers for chunks that is this cache's own. */
  constructor(path: string, firstId: number) {
    const db = new GuardedDatabase(path, { enableForeignKeyConstraints: false });
    this.#path = path;
    this.#db = db;
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY");
    migrate(db, "");
    // Rows come without what they refer to, so that a cascade would take away too little or too much.
    db.exec(`
      PRAGMA foreign_keys = OFF;
      CREATE TABLE id_range (first INTEGER NOT NULL) STRICT;
      INSERT INTO id_range (first) VALUES (${firstId});
      ${FACTS_TABLE}
      CREATE TABLE blind_inline (inode_id INTEGER NOT NULL) STRICT;
      CREATE UNIQUE INDEX blind_inline_once ON blind_inline (inode_id);
    `);
    this.facts = new RowFacts((sql) => db.preparePlain(sql));
    db.facts = this.facts;
    this.#ahead = new RowsAhead(this.facts, (sql) => db.preparePlain(sql));
    this.#blind = db.preparePlain("SELECT inode_id FROM blind_inline");
    this.#forgetBlind = db.preparePlain("DELETE FROM blind_inline");
    this.#tables = new Map(
      SHARED_TABLES.map((table) => [table.name, tableStatements(table, (sql) => db.preparePlain(sql))]),
    );
  }

  /** The database for the commands; each of its statements is guarded. */
  get db(): DatabaseSync {
    return this.#db;
  }

  /** A statement of the engine's own, which must know that what it reads is whole. */
  preparePlain(sql: string): StatementSync {
    return this.#db.preparePlain(sql);
  }

  /**
   * A connection that sees what is committed, each of its statements guarded by the facts of the same
   * version.
   */
  openReader(): { readonly db: DatabaseSync; readonly facts: RowFacts } {
    const db = new GuardedDatabase(this.#path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    const facts = new RowFacts((sql) => db.preparePlain(sql));
    db.facts = facts;
    return { db, facts };
  }

  /** Begins a group, runs it and returns what it has changed. The transaction stays open. */
  change(run: () => void): TableEffects[] {
    this.#db.exec("BEGIN IMMEDIATE");
    this.facts.begin();
    const session = this.#db.createSession();
    try {
      run();
      return this.#effectsOf(session.changeset());
    } finally {
      session.close();
    }
  }

  /** Ends the group as PostgreSQL has ended it. */
  end(how: "COMMIT" | "ROLLBACK"): void {
    if (this.#db.isTransaction) this.#db.exec(how);
  }

  /** What to fetch for facts that are missing, with what will probably be asked for next. */
  toFetch(missing: readonly Fact[]): Fact[] {
    return [...this.facts.widened(missing), ...this.#ahead.of(missing)];
  }

  /** Takes rows in. A row that is here already is as new. */
  accept({ facts, rows }: FetchedRows): void {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      for (const { table, row } of rows) {
        insertJson(this.#statements(table), row);
      }
      for (const fact of facts) this.facts.add(fact);
      this.#db.exec("COMMIT");
    } catch (error) {
      this.end("ROLLBACK");
      throw error;
    }
  }

  /** Forgets all rows and facts. */
  forget(): void {
    const tables = [...SHARED_TABLES.map(({ name }) => name), "fetched", "blind_inline"];
    this.#db.exec(`BEGIN; ${tables.map((name) => `DELETE FROM ${name};`).join(" ")} COMMIT`);
  }

  close(): void {
    this.#db.close();
  }

  #effectsOf(changeset: Uint8Array): TableEffects[] {
    const effects = new Map<string, { table: string; gone: object[]; fresh: object[]; rows: object[] }>();
    const of = (table: string): { gone: object[]; fresh: object[]; rows: object[] } => {
      const known = effects.get(table) ?? { table, gone: [], fresh: [], rows: [] };
      effects.set(table, known);
      return known;
    };
    for (const { table, key, isGone } of changedRows(changeset)) {
      const statements = this.#tables.get(table);
      if (statements === undefined) continue;
      const { select, idAt } = statements;
      if (isGone) {
        const columns = keyColumns(statements.table);
        of(table).gone.push(Object.fromEntries(columns.map((name, at) => [name, key[at]])));
        continue;
      }
      const isFresh = idAt >= 0 && this.facts.isNew(key[idAt] as number);
      of(table)[isFresh ? "fresh" : "rows"].push(select.get(...key) as object);
    }
    const blind = this.#blind.all() as { inode_id: number }[];
    if (blind.length > 0) {
      const { gone, rows } = of("inline_content");
      const { select } = this.#statements("inline_content");
      const sent = new Set(rows.map((row) => (row as { inode_id: number }).inode_id));
      gone.push(...blind);
      for (const { inode_id: inode } of blind) {
        // Bytes that went and came back alike are no change here, and were deleted there.
        const row = sent.has(inode) ? undefined : select.get(inode);
        if (row !== undefined) rows.push(row);
      }
      this.#forgetBlind.run();
    }
    return [...effects.values()];
  }

  #statements(table: string): TableStatements {
    const statements = this.#tables.get(table);
    if (statements === undefined) throw new Error(`there is no shared table ${table}`);
    return statements;
  }
}
