// The worker that owns the metadata store's file, so that the event loop never waits for a flush.
import { parentPort, workerData } from "node:worker_threads";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import { SqliteReader } from "./sqlite-reader.ts";
import { type Now, SqliteStore } from "./sqlite-store.ts";

/** The start data of the worker. */
export interface WorkerStart {
  readonly path: string;
  readonly now: Now;
  /** "owner": writes everything, alone. Beside it "reader" only reads, "enroller" writes nodes for SSH. */
  readonly role: "owner" | "reader" | "enroller";
}

/** Names of the store's commands. */
export type StoreCommand = Exclude<keyof SqliteStore, "close" | "upgrade">;

/** One command on its way to the worker; "close" is the last. */
export interface WorkerRequest {
  readonly id: number;
  readonly command: StoreCommand | "close";
  readonly now: Now;
  readonly values: readonly unknown[];
}

/** A refusal on its way back: errors lose their class between threads. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A reply of the worker; the first one, with id 0, says whether the file was opened, and its upgrade. */
export type WorkerReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: WireError; readonly isFinal: boolean };

/** SQLite's primary result codes of a file beyond trust: I/O error, corruption, not a database. */
const FINAL_ERRORS: ReadonlySet<number> = new Set([10, 11, 26]);

/** After a failed flush nothing is retried: pages that the kernel dropped would look saved the next time. */
let failure: WireError | undefined;

function toReply(id: number, error: unknown, isReader: boolean): WorkerReply {
  if (error instanceof GroveError) {
    const { code, message, metadata } = error;
    return { id, error: { code, message, metadata }, isFinal: false };
  }
  const sqliteCode = (error as { errcode?: number }).errcode;
  const isFinal = !isReader && sqliteCode !== undefined && FINAL_ERRORS.has(sqliteCode & 0xff);
  const message = `the metadata store failed: ${errorText(error)}`;
  const wire: WireError = { code: "STORE_UNAVAILABLE", message, metadata: {} };
  if (isFinal) failure = wire;
  return { id, error: wire, isFinal };
}

function answer(store: SqliteStore | SqliteReader, request: WorkerRequest): WorkerReply {
  const { id, command, now, values } = request;
  if (failure !== undefined && command !== "close") return { id, error: failure, isFinal: true };
  try {
    if (command === "close") {
      store.close();
      return { id, value: undefined };
    }
    const run = (store as SqliteStore)[command] as (now: Now, ...values: readonly unknown[]) => unknown;
    return { id, value: run.call(store, now, ...values) };
  } catch (error) {
    return toReply(id, error, store instanceof SqliteReader);
  }
}

function serve(port: NonNullable<typeof parentPort>): void {
  const { path, now, role } = workerData as WorkerStart;
  let store: SqliteStore | SqliteReader;
  try {
    store = role === "owner" ? new SqliteStore(path, now) : new SqliteReader(path, role);
  } catch (error) {
    port.postMessage(toReply(0, error, role !== "owner"));
    port.close();
    return;
  }
  port.on("message", (request: WorkerRequest) => {
    port.postMessage(answer(store, request));
    if (request.command === "close") port.close();
  });
  const value = store instanceof SqliteStore ? store.upgrade : undefined;
  port.postMessage({ id: 0, value } satisfies WorkerReply);
}

if (parentPort !== null) serve(parentPort);
