// A process that runs operations on a store, waits each time until it is traced, and prints begin and end.
import { readSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Storage } from "#storage/contract/storage.ts";
import { chunkFiles, openTestStorage } from "#storage/local/store.fixture.ts";
import { operationOf, placeIn } from "./operations.ts";

/** A line of the process. */
export interface SubjectLine {
  readonly event: "ready" | "begin" | "done" | "failed" | "open" | "failure" | "end";
  readonly operation?: string;
  readonly text?: string;
}

const SETTLES_MS = 25;
const SETTLE_TRIES = 200;

const [, , directory = "", mode = "operate", ...names] = process.argv;

function say(line: SubjectLine): void {
  // Written synchronously, so that it is out before the process is killed.
  writeSync(1, `${JSON.stringify(line)}\n`);
}

/** Announces that tracing may begin, and waits for the answer. */
function ready(): void {
  say({ event: "ready" });
  readSync(0, Buffer.alloc(1));
}

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : String(error);

async function operate(storage: Storage, name: string): Promise<void> {
  const operation = operationOf(name);
  say({ event: "begin", operation: name });
  try {
    await operation.run(placeIn(storage, directory, name));
    say({ event: "done", operation: name });
  } catch (error) {
    say({ event: "failed", operation: name, text: codeOf(error) });
  }
}

/**
 * Waits for the operation's background work. A trace of the opening has listings as well, which must not
 * include ours.
 */
async function settle(storage: Storage): Promise<void> {
  if (mode !== "operate") return new Promise((resolve) => setTimeout(resolve, SETTLES_MS));
  for (let tries = 0; tries < SETTLE_TRIES; tries++) {
    await new Promise((resolve) => setTimeout(resolve, SETTLES_MS));
    if (storage.failure !== undefined || chunkFiles(directory).length === storage.facts().chunkCount) return;
  }
}

/** Opens one of several stores, and prints when its background work is done. */
async function recover(name: string): Promise<void> {
  say({ event: "begin", operation: name });
  try {
    const recovered = await openTestStorage(join(directory, name));
    await settle(recovered);
    say({ event: "done", operation: name });
    await recovered.close();
  } catch (error) {
    say({ event: "failed", operation: name, text: codeOf(error) });
  }
}

if (mode === "recover") {
  ready();
  for (const name of names) await recover(name);
  say({ event: "end" });
  process.exit(0);
}
if (mode === "open") ready();
let storage: Storage | undefined;
try {
  storage = await openTestStorage(directory);
  storage.onFailure((text) => say({ event: "failure", text }));
  say({ event: "open" });
} catch (error) {
  say({ event: "failed", text: codeOf(error) });
}
if (storage !== undefined) {
  if (mode === "operate") ready();
  for (const name of names) await operate(storage, name);
  await settle(storage);
  if (names.some((name) => operationOf(name).closes === true)) await storage.close();
}
say({ event: "end" });
process.exit(0);
