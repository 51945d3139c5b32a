// Settings: rows of a key and a text, in which commands keep what has no table of its own.
import { all, batchesOf, get, type Plan, rowsOfMarks, run } from "./sql-plan.ts";

/** Settings that one statement names: on PostgreSQL every statement is a journey. */
const BATCH = 500;

/** A setting's value. */
export function* setting(key: string): Plan<string | undefined> {
  return (yield* get<{ value: string }>("SELECT value FROM settings WHERE key = ?", key))?.value;
}

/** The values of those that are there, by key. */
export function* settingsOf(keys: readonly string[]): Plan<Map<string, string>> {
  const found = new Map<string, string>();
  for (const batch of batchesOf(keys, BATCH)) {
    const rows = yield* all<{ key: string; value: string }>(
      `SELECT key, value FROM settings WHERE key IN (${marksFor(batch)})`,
      ...batch,
    );
    for (const { key, value } of rows) found.set(key, value);
  }
  return found;
}

/** Writes a setting. */
export function* putSetting(key: string, value: string): Plan<void> {
  yield* putSettings([[key, value]]);
}

/** Writes a setting as JSON. */
export function* putJson(key: string, value: object): Plan<void> {
  yield* putSetting(key, JSON.stringify(value));
}

/** Writes settings, each key once. */
export function* putSettings(settings: readonly (readonly [key: string, value: string])[]): Plan<void> {
  for (const batch of batchesOf(settings, BATCH)) {
    yield* run(
      `INSERT INTO settings (key, value) VALUES ${rowsOfMarks(batch.length, 2)}
       ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
      ...batch.flat(),
    );
  }
}

/** Writes a setting unless it is there: then false. */
export function* addSetting(key: string, value: string): Plan<boolean> {
  const changes = yield* run(
    "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
    key,
    value,
  );
  return changes === 1;
}

/** Removes a setting. */
export function* dropSetting(key: string): Plan<void> {
  yield* dropSettings([key]);
}

/** Removes settings. */
export function* dropSettings(keys: readonly string[]): Plan<void> {
  for (const batch of batchesOf(keys, BATCH))
    yield* run(`DELETE FROM settings WHERE key IN (${marksFor(batch)})`, ...batch);
}

function marksFor(keys: readonly string[]): string {
  return keys.map(() => "?").join(", ");
}
