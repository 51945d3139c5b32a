// Opens a store after a crash or a fault, and lists what is wrong with it.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { checkStorage } from "#storage/check/check-storage.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { chunkFiles, openTestStorage } from "#storage/local/store.fixture.ts";
import { IDENTITY_FILE } from "#storage/metadata/data-directory.ts";
import { DATABASE_FILE } from "#storage/metadata/schema.ts";
import { dumpOf } from "./store-dump.ts";

const run = promisify(execFile);
const SETTLES_MS = 5;
const SETTLE_TRIES = 2_000;
/** A note of the check that is no leftover. */
const UNFINISHED = /unfinished uploads that their senders may go on with/;

/** States that a folder may hold, in the order of the operations' lines. */
export interface Allowed {
  readonly folder: string;
  readonly states: readonly { readonly is: string; readonly lines: readonly string[] }[];
  /** States between the first and the last are allowed as well. */
  readonly isGradual: boolean;
}

/** Copies a data directory with everything in it. */
export async function copyDirectory(from: string, to: string): Promise<void> {
  await run("cp", ["-a", from, to]);
}

/**
 * Returns everything wrong with a data directory after a crash: before it is opened, when it is, and after
 * its background work.
 */
export async function problemsOf(directory: string, allowed: readonly Allowed[]): Promise<string[]> {
  const problems = sound(directory, "as it was left", false);
  let storage: Storage;
  try {
    storage = await openTestStorage(directory);
  } catch (error) {
    return [...problems, `it cannot be opened: ${String(error)}`];
  }
  try {
    for (const each of allowed) {
      const wrong = await wrongIn(storage, directory, each);
      if (wrong !== undefined) problems.push(wrong);
    }
    await atRest(directory);
  } finally {
    await storage.close();
  }
  problems.push(...sound(directory, "after its recovery", true));
  return problems;
}

/** Returns the findings of the deep check; leftovers only once they must be gone. */
function sound(directory: string, when: string, isRecovered: boolean): string[] {
  if (!existsSync(join(directory, IDENTITY_FILE)) || !existsSync(join(directory, DATABASE_FILE))) return [];
  try {
    const { differences, notes, chunkCount } = checkStorage(directory, { repair: false, deep: true });
    const found = [...differences];
    if (isRecovered) {
      found.push(...notes.filter((note) => !UNFINISHED.test(note)));
      const files = chunkFiles(directory).length;
      if (files !== chunkCount) found.push(`${files} chunk files for ${chunkCount} chunks`);
    }
    return found.map((text) => `${when}: ${text}`);
  } catch (error) {
    return [`${when} it cannot be checked: ${String(error)}`];
  }
}

/** Waits until no entry is left to purge or unlink. */
async function atRest(directory: string): Promise<void> {
  const db = new DatabaseSync(join(directory, DATABASE_FILE), { readOnly: true });
  try {
    const left = db.prepare(
      "SELECT (SELECT count(*) FROM purging) + (SELECT count(*) FROM garbage) AS count",
    );
    for (let tries = 0; tries < SETTLE_TRIES; tries++) {
      if ((left.get() as { count: number }).count === 0) return;
      await sleep(SETTLES_MS);
    }
  } finally {
    db.close();
  }
}

async function wrongIn(storage: Storage, directory: string, allowed: Allowed): Promise<string | undefined> {
  const { folder, states, isGradual } = allowed;
  let found: string[];
  try {
    found = await dumpOf(storage, directory, folder);
  } catch (error) {
    return `${folder} cannot be read: ${String(error)}`;
  }
  const text = found.join("\n");
  if (states.some(({ lines }) => lines.join("\n") === text)) return undefined;
  if (isGradual && states.length > 1 && isBetween(found, states)) return undefined;
  const told = states.map(({ is, lines }) => `${is} [${lines.join("; ")}]`).join(" nor ");
  return `${folder} is neither ${told}, but [${found.join("; ")}]`;
}

/**
 * True when every line found is in some state, and the lines common to all states are found; sizes of folders
 * aside.
 */
function isBetween(found: readonly string[], states: Allowed["states"]): boolean {
  const some = new Set(states.flatMap(({ lines }) => lines));
  const [first, ...others] = states;
  const all = (first?.lines ?? []).filter((line) => others.every(({ lines }) => lines.includes(line)));
  return found.every((line) => some.has(line)) && all.every((line) => found.includes(line));
}
