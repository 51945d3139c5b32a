// The rows of held roots in an SQLite database of this machine: a cache of PostgreSQL's, with the commands'
// own SQL.
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import { BUSY_TIMEOUT_MS, migrate } from "#storage/metadata/schema.ts";
import { ChangedKeys } from "./changed-keys.ts";
import { FACTS_TABLE, type Fact, RowFacts } from "./row-facts.ts";
import { guard } from "./row-guards.ts";
import { RowsAhead } from "./rows-ahead.ts";
import { SHARED_TABLES } from "./shared-tables.ts";
import {
  insertJson,
  type JsonRow,
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
  changes: ChangedKeys | undefined;

  override prepare(sql: string): StatementSync {
    const { facts } = this;
    if (facts === undefined) return super.prepare(sql);
    return guard(sql, super.prepare(sql), {
      facts,
      touch: (table, key) => this.changes?.touch(table, key),
      keep: (table, key, row) => this.changes?.keep(table, key, row),
      prepare: (plain) => super.prepare(plain),
    });
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
  readonly #changes: ChangedKeys;
  readonly #begin: StatementSync;
  readonly #ends: Readonly<Record<"COMMIT" | "ROLLBACK", StatementSync>>;
  readonly #savepoint: StatementSync;
  readonly #undo: StatementSync;
  readonly #release: StatementSync;
  /** Rises whenever what the database holds may have changed. */
  #version = 0;

  /** `firstId` begins the range of numbers for chunks that is this cache's own. */
  constructor(path: string, firstId: number) {
    const db = new GuardedDatabase(path, { enableForeignKeyConstraints: false });
    this.#path = path;
    this.#db = db;
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY");
    migrate(db, "");
    // Rows come without what they refer to, so that a cascade would take away too little or too much. Detached
    // content is removed root by root.
    db.exec(`
      PRAGMA foreign_keys = OFF;
      CREATE TABLE id_range (first INTEGER NOT NULL) STRICT;
      INSERT INTO id_range (first) VALUES (${firstId});
      CREATE INDEX purging_by_root ON purging (coalesce(inode_id, content_id) / ${ROOT_STRIDE}, id);
      ${FACTS_TABLE}
    `);
    this.#changes = new ChangedKeys(db, SHARED_TABLES);
    this.facts = this.#factsOf(db);
    db.facts = this.facts;
    db.changes = this.#changes;
    this.#ahead = new RowsAhead(this.facts, (sql) => db.preparePlain(sql));
    this.#begin = db.preparePlain("BEGIN IMMEDIATE");
    this.#ends = { COMMIT: db.preparePlain("COMMIT"), ROLLBACK: db.preparePlain("ROLLBACK") };
    this.#savepoint = db.preparePlain("SAVEPOINT command");
    this.#undo = db.preparePlain("ROLLBACK TO command");
    this.#release = db.preparePlain("RELEASE command");
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
    const facts = this.#factsOf(db);
    db.facts = facts;
    return { db, facts };
  }

  /** Begins a group, runs it and returns what it has changed. The transaction stays open. */
  change(run: () => void): TableEffects[] {
    this.#begin.run();
    this.facts.begin();
    this.#changes.during(run);
    return this.#changes.effects(
      (table) => this.#statements(table),
      (id) => this.facts.isNew(id),
    );
  }

  /** False once an error of the disk has undone the whole group, and after its end. */
  get isChanging(): boolean {
    return this.#db.isTransaction;
  }

  /** Runs one command of the group. When it throws and the group goes on, it has changed nothing. */
  attempt<T>(run: () => T): T {
    const before = this.#changes.count;
    this.#savepoint.run();
    try {
      return run();
    } catch (error) {
      if (this.isChanging) this.#undo.run();
      this.#changes.undoTo(before);
      throw error;
    } finally {
      if (this.isChanging) this.#release.run();
    }
  }

  /** Ends the group as PostgreSQL has ended it. */
  end(how: "COMMIT" | "ROLLBACK"): void {
    this.#version++;
    if (this.#db.isTransaction) this.#ends[how].run();
  }

  /** What to fetch for facts that are missing, with what will probably be asked for next. */
  toFetch(missing: readonly Fact[]): Fact[] {
    return [...this.facts.widened(missing), ...this.#ahead.of(missing)];
  }

  /** Takes rows in. A row that is here already is as new. */
  accept({ facts, rows }: FetchedRows): void {
    this.#begin.run();
    try {
      for (const { table, row } of rows) {
        insertJson(this.#statements(table), row);
      }
      for (const fact of facts) this.facts.add(fact);
      this.end("COMMIT");
    } catch (error) {
      this.end("ROLLBACK");
      throw error;
    }
  }

  /** Forgets all rows and facts, or none where it throws. */
  forget(): void {
    this.#version++;
    const tables = [...SHARED_TABLES.map(({ name }) => name), "fetched"];
    const empty = tables.map((name) => `DELETE FROM ${name};`).join(" ");
    try {
      this.#db.exec(`BEGIN; ${this.#changes.unnoted(empty)} COMMIT`);
    } catch (error) {
      this.end("ROLLBACK");
      throw error;
    }
  }

  close(): void {
    this.#db.close();
  }

  #factsOf(db: GuardedDatabase): RowFacts {
    return new RowFacts((sql) => db.preparePlain(sql), { version: () => this.#version });
  }

  #statements(table: string): TableStatements {
    const statements = this.#tables.get(table);
    if (statements === undefined) throw new Error(`there is no shared table ${table}`);
    return statements;
  }
}
