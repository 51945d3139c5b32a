// Opens what a crash or a fault left behind, and says what of it should not be.
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

/** What a folder must hold: one of these, in the order in which they are told. */
export interface Allowed {
  readonly folder: string;
  readonly states: readonly { readonly is: string; readonly lines: readonly string[] }[];
  /** Also anything between the first state and the last. */
  readonly isGradual: boolean;
}

/** Copies a data directory with everything in it. */
export async function copyDirectory(from: string, to: string): Promise<void> {
  await run("cp", ["-a", from, to]);
}

/** Everything that is wrong with a data directory after a crash: before it is opened, when it is, and when it has come to rest. */
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

/** What the deep check finds; leftovers only once they must be gone. */
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

/** Waits until nothing waits to be purged or unlinked any more. */
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

/** Whether everything that is there is in some state, and what is in all states is there; sizes of folders aside. */
function isBetween(found: readonly string[], states: Allowed["states"]): boolean {
  const some = new Set(states.flatMap(({ lines }) => lines));
  const [first, ...others] = states;
  const all = (first?.lines ?? []).filter((line) => others.every(({ lines }) => lines.includes(line)));
  return found.every((line) => some.has(line)) && all.every((line) => found.includes(line));
}
