// Notes the keys of the rows that commands change, by triggers: SQLite's sessions parse SQL anew for each group.
import type { DatabaseSync } from "node:sqlite";
import type { SharedTable } from "./shared-tables.ts";
import { keyColumns, type TableEffects, type TableStatements } from "./table-rows.ts";

/** A row that was changed, made or removed. */
export interface ChangedKey {
  readonly table: string;
  /** Values of the primary key, in the order of the columns of the table. */
  readonly key: readonly (number | string)[];
  /** True for a row that was not there before. */
  readonly isMade: boolean;
}

/** The changed rows of one table, by their keys. */
interface Changed {
  readonly table: SharedTable;
  readonly rows: Map<number | string, ChangedKey>;
  /** Rows as their inserts have made them, until they change again. */
  readonly kept: Map<number | string, object>;
}

/** Of one database, and only while it is told to note: one for each row, whatever happens to it meanwhile. */
export class ChangedKeys {
  readonly #tables: readonly Changed[];
  readonly #order: { readonly of: Changed; readonly id: number | string }[] = [];
  readonly #dropDeletes: string;
  readonly #makeDeletes: string;
  #isNoting = false;

  constructor(db: DatabaseSync, tables: readonly SharedTable[]) {
    this.#tables = tables.map((table) => ({ table, rows: new Map(), kept: new Map() }));
    db.function("note_change", { varargs: true }, (...values) => {
      if (!this.#isNoting) return null;
      const [at, isMade, ...key] = values as number[];
      this.#note(this.#tables[at as number] as Changed, key, isMade === 1);
      return null;
    });
    const deletes = tables.map(({ name }) => `note_${name}_deleted`);
    this.#dropDeletes = deletes.map((name) => `DROP TRIGGER temp.${name};`).join(" ");
    this.#makeDeletes = tables
      .map((table, at) => trigger(`${table.name}_deleted`, "DELETE", table, [note(table, at, "old", 0)]))
      .join(" ");
    db.exec(`${tables.map(triggers).join(" ")} ${this.#makeDeletes}`);
  }

  /** Rows noted up to now. */
  get count(): number {
    return this.#order.length;
  }

  /** Notes what changes while it runs; what was noted before is forgotten. */
  during<T>(run: () => T): T {
    this.undoTo(0);
    this.#isNoting = true;
    try {
      return run();
    } finally {
      this.#isNoting = false;
    }
  }

  /** The rows, in the order of their first changes. */
  all(): ChangedKey[] {
    return this.#order.flatMap(({ of, id }) => of.rows.get(id) ?? []);
  }

  /**
   * The rows as they are now. Those with an id that roots give out are fresh where `isNew` says that the database
   * cannot have it.
   */
  effects(
    statementsOf: (table: string) => TableStatements,
    isNew: (id: number, isMade: boolean) => boolean,
  ): TableEffects[] {
    const effects = new Map<string, { table: string; gone: object[]; fresh: object[]; rows: object[] }>();
    for (const { of, id } of this.#order) {
      const changed = of.rows.get(id);
      if (changed === undefined) continue;
      const { table: name, key, isMade } = changed;
      const { table, idAt, select } = statementsOf(name);
      const row = of.kept.get(id) ?? select.get(...key);
      // What was made and went again is no change.
      if (row === undefined && isMade) continue;
      const known = effects.get(name) ?? { table: name, gone: [], fresh: [], rows: [] };
      effects.set(name, known);
      if (row === undefined)
        known.gone.push(Object.fromEntries(keyColumns(table).map((column, at) => [column, key[at]])));
      else if (idAt >= 0 && isNew(key[idAt] as number, isMade)) known.fresh.push(row);
      else known.rows.push(row);
    }
    this.#dropKept();
    return [...effects.values()];
  }

  /** Notes a row that may have been there, though this database does not have it. */
  touch(name: string, key: number): void {
    this.#note(this.#of(name), [key], false);
  }

  /**
   * Takes a row that was just inserted under a number as all of what it is, so that it is not read back. The next
   * change of it, and whatever is undone, ends that.
   */
  keep(name: string, key: number, row: object): void {
    if (this.#isNoting) this.#of(name).kept.set(key, row);
  }

  /** Forgets rows that were noted after the first ones, when their changes are undone. */
  undoTo(count: number): void {
    for (const { of, id } of this.#order.splice(count)) of.rows.delete(id);
    // A row of a command before may have been kept by one that is undone.
    this.#dropKept();
  }

  /** Statements between which nothing is noted of rows that go: whole tables are emptied faster so. */
  unnoted(statements: string): string {
    return `${this.#dropDeletes} ${statements} ${this.#makeDeletes}`;
  }

  #dropKept(): void {
    for (const { kept } of this.#tables) kept.clear();
  }

  #of(name: string): Changed {
    const of = this.#tables.find(({ table }) => table.name === name);
    if (of === undefined) throw new Error(`no changes are noted of ${name}`);
    return of;
  }

  #note(of: Changed, key: readonly (number | string)[], isMade: boolean): void {
    const id = key.length === 1 ? (key[0] as number | string) : JSON.stringify(key);
    of.kept.delete(id);
    if (of.rows.has(id)) return;
    of.rows.set(id, { table: of.table.name, key, isMade });
    this.#order.push({ of, id });
  }
}

/** Of rows that come or change; a row under another key is a new one, and the old one is gone. */
function triggers(table: SharedTable, at: number): string {
  const keys = keyColumns(table);
  const others = table.columns.map(({ name }) => name).filter((name) => !keys.includes(name));
  const made = trigger(`${table.name}_inserted`, "INSERT", table, [note(table, at, "new", 1)]);
  const moved = trigger(`${table.name}_moved`, `UPDATE OF ${keys.join(", ")}`, table, [
    note(table, at, "old", 0),
    note(table, at, "new", 1),
  ]);
  if (others.length === 0) return `${made} ${moved}`;
  const changed = trigger(`${table.name}_updated`, `UPDATE OF ${others.join(", ")}`, table, [
    note(table, at, "new", 0),
  ]);
  return `${made} ${moved} ${changed}`;
}

function trigger(name: string, event: string, table: SharedTable, statements: readonly string[]): string {
  return `CREATE TEMP TRIGGER note_${name} AFTER ${event} ON main.${table.name} BEGIN ${statements.join(" ")} END;`;
}

function note(table: SharedTable, at: number, which: "old" | "new", isMade: 0 | 1): string {
  const key = keyColumns(table).map((name) => `${which}.${name}`);
  return `SELECT note_change(${at}, ${isMade}, ${key.join(", ")});`;
}
