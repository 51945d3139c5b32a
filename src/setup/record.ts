// What an earlier `grove init` has written here: its answers, and a checksum of each file.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { GroveError } from "#base/errors.ts";
import { readStateFile, shapeOf } from "#os/state-file.ts";
import { type Answers, KEYS } from "./answers.ts";

const FILE = "init.json";

/** The record. It holds hashes and tokens of the cluster, so its mode is 0600. */
export interface SetupRecord {
  readonly answers: Answers;
  /** SHA-256 by path, of every file as it was written. */
  readonly files: Readonly<Record<string, string>>;
}

/** Path of the record. */
export function recordPath(settings: string): string {
  return join(settings, FILE);
}

/** Reads the record; undefined where nothing was set up. Throws BAD_ARGUMENT where it cannot be understood. */
export async function readRecord(settings: string): Promise<SetupRecord | undefined> {
  const path = recordPath(settings);
  const record = await readStateFile(path, shapeOf(recordOf));
  if (record !== "broken") return record === "missing" ? undefined : record;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${path} is damaged, and with it what this machine was set up as: put it back from a copy; without one move it away, ` +
      "and give all answers again, with metrics_token as SVC_METRICS_TOKEN beside it says",
  );
}

/** Text of the record. */
export function recordText(record: SetupRecord): string {
  return `${JSON.stringify({ schema: 1, ...record }, null, 2)}\n`;
}

/** The checksum that the record keeps. */
export function checksum(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function recordOf(document: unknown): SetupRecord {
  const { schema, answers, files } = document as Record<string, unknown>;
  if (schema !== 1) throw new Error("it says no schema");
  const texts = answers as Record<string, unknown>;
  const known = KEYS.flatMap((key) => {
    const value = texts[key];
    return typeof value === "string" ? [[key, value] as const] : [];
  });
  return { answers: Object.fromEntries(known), files: { ...(files as Record<string, string>) } };
}
