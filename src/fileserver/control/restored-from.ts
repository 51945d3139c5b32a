// Reads from a data folder the restore that it came from: its time, and the time of the backup.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { IDENTITY_FILE } from "#storage/metadata/data-directory.ts";

/** A restore. Both in unix milliseconds. */
export interface RestoredFrom {
  readonly atMs: number;
  readonly takenAtMs: number;
}

/** Undefined for a folder that was not restored. Its identity was checked when it was opened. */
export async function readRestoredFrom(dataFolder: string): Promise<RestoredFrom | undefined> {
  const text = await readFile(join(dataFolder, IDENTITY_FILE), "utf8").catch(() => "{}");
  const { created_at_ms: atMs, restored_from: from } = JSON.parse(text) as {
    readonly created_at_ms?: unknown;
    readonly restored_from?: { readonly taken_at_ms?: unknown };
  };
  const takenAtMs = from?.taken_at_ms;
  return typeof atMs === "number" && typeof takenAtMs === "number" ? { atMs, takenAtMs } : undefined;
}
