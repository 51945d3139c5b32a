// Settings: rows of a key and a text, in which commands keep what has no table of its own.
import { get, type Plan, run } from "./sql-plan.ts";

/** A setting's value. */
export function* setting(key: string): Plan<string | undefined> {
  return (yield* get<{ value: string }>("SELECT value FROM settings WHERE key = ?", key))?.value;
}

/** Writes a setting. */
export function* putSetting(key: string, value: string): Plan<void> {
  yield* run(
    "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    key,
    value,
  );
}
