// Fixtures of the tests of both engines' rows: a process of the shared engine, and the local engine's writer.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import type pg from "pg";
import { GroveError } from "#base/errors.ts";
import { migrate } from "#storage/metadata/schema.ts";
import type { Command } from "#storage/writer/write-commands.ts";
import { Writer } from "#storage/writer/writer.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { OWNER, type Step } from "./random-commands.fixture.ts";
import { RowCache } from "./row-cache.ts";
import { fetchRows } from "./row-fetch.ts";
import type { SharedDatabase } from "./shared-database.fixture.ts";
import type { SharedTable } from "./shared-tables.ts";
import { SharedWriter, type SharedWriterDeps } from "./shared-writer.ts";

/** A row by its columns. */
export type Row = Record<string, unknown>;

/** Time of roots that tests make. */
export const NOW_MS = 1_790_000_000_000;

/** Who changes something, and when, in commands of tests that need no more. */
export const CHANGE = { owner: OWNER, by: OWNER, accessVersion: undefined, nowMs: NOW_MS };

/** A process with the engine's writer. */
export async function openWriter(
  t: TestContext,
  database: SharedDatabase,
  instance = "one",
  parts: Partial<SharedWriterDeps> = {},
): Promise<{ writer: SharedWriter; cache: RowCache; client: pg.Client; fetches: () => number }> {
  const client = await database.connect();
  const { rows } = await client.query(`SELECT nextval('id_range') * 4294967296 AS first`);
  const cache = new RowCache(join(temporaryDirectory(t), "rows.db"), (rows[0] as { first: number }).first);
  t.after(() => cache.close());
  let fetches = 0;
  const writer = new SharedWriter({
    cache,
    commits: database.client(),
    instance,
    fetch: (facts) => {
      fetches++;
      return fetchRows(client, facts);
    },
    ...parts,
  });
  return { writer, cache, client, fetches: () => fetches };
}

/** Makes a root, or finds it, and tells its number. */
export async function makeRoot(client: pg.Client, owner = OWNER, instance = "one"): Promise<number> {
  const made = await client.query("SELECT make_root($1, $2, $3, $4) AS number", [
    owner,
    `ROOT ${owner}`,
    instance,
    NOW_MS,
  ]);
  return (made.rows[0] as { number: number }).number;
}

/** The local engine's writer on a database of its own. */
export class LocalRows {
  readonly #writer: Writer;
  readonly path: string;

  constructor(t: TestContext) {
    this.path = join(temporaryDirectory(t), "inodes.db");
    const db = new DatabaseSync(this.path);
    migrate(db, "local");
    db.close();
    this.#writer = new Writer({ databasePath: this.path, ballastPath: `${this.path}.b`, ballastBytes: 0 });
    t.after(() => this.#writer.close("leave"));
    const root = { op: "createRoot", owner: OWNER, rootId: `ROOT ${OWNER}`, nowMs: NOW_MS } as const;
    this.#writer.run([[1, root]]);
  }

  run(step: Step): unknown {
    if (step === "purge") return this.#writer.purgeSlice();
    return this.#writer.run([[1, step.command]])[0]?.[1];
  }

  rows({ name, columns }: SharedTable): Row[] {
    return this.#read(`SELECT ${columns.map((column) => column.name).join(", ")} FROM ${name}`);
  }

  chunkName(id: number): string {
    return String(this.#read(`SELECT name FROM chunk WHERE id = ${id}`)[0]?.["name"]);
  }

  #read(sql: string): Row[] {
    const db = new DatabaseSync(this.path, { readOnly: true });
    const rows = db.prepare(sql).all();
    db.close();
    return rows;
  }
}

/** True for an error of that code, for assert.rejects. */
export const refusal =
  (code: string) =>
  (error: unknown): boolean =>
    error instanceof GroveError && error.code === code;

/** A command that makes a folder. */
export const directory = (
  owner: string,
  parentId: number,
  name: string,
): Extract<Command, { op: "createDirectory" }> => ({
  op: "createDirectory",
  owner,
  by: owner,
  accessVersion: undefined,
  parentId,
  name,
  nowMs: NOW_MS,
});

/** Has a writer make a directory. */
export const makeDirectory = (
  writer: SharedWriter,
  parentId: number,
  name: string,
): ReturnType<typeof writer.submit<"createDirectory">> =>
  writer.submit(OWNER, { op: "createDirectory", ...CHANGE, parentId, name });
