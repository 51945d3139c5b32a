// The writer's thread: takes queued commands, commits them at once, answers; purges and checkpoints in
// between.
import { type MessagePort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { GARBAGE_BATCH_CHUNKS } from "#storage/metadata/content-rows.ts";
import type { WriterAnswer, WriterRequest } from "./write-commands.ts";
import { type NumberedCommands, Writer } from "./writer.ts";

/** Start data of the thread. */
export interface WriterData {
  readonly port: MessagePort;
  readonly databasePath: string;
  readonly ballastPath: string;
  readonly ballastBytes: number;
}

/** Under load, one slice of removed trees is purged after so many transactions. */
const TRANSACTIONS_PER_PURGE = 4;
/** Purging waits while so many chunk files are still to be unlinked. */
const GARBAGE_AHEAD = 32 * GARBAGE_BATCH_CHUNKS;
const IDLE_MS = 1_000;

const data = workerData as WriterData;
const { port } = data;
const writer = new Writer(data);
let waiting: (readonly [number, NumberedCommands[number][1]])[] = [];
let atOnce = 1;
let closing: "checkpoint" | "leave" | undefined;
let transactions = 0;
let isPurging = true;
let idleTimer: NodeJS.Timeout | undefined;

function take(request: WriterRequest): void {
  if ("close" in request) {
    closing = request.close;
    return;
  }
  atOnce = request.atOnce;
  // The main thread sends no commands after the request to close.
  if (waiting.length === 0) waiting = [...request.commands];
  else waiting.push(...request.commands);
}

function drain(): void {
  for (
    let next = receiveMessageOnPort(port);
    next !== undefined;
    next = waiting.length < atOnce ? receiveMessageOnPort(port) : undefined
  ) {
    take(next.message as WriterRequest);
  }
}

function answer(replies: WriterAnswer["replies"], closed = false): void {
  const { facts, failure } = writer;
  port.postMessage({
    replies,
    facts,
    hasGarbage: writer.garbageCount > 0,
    sharesChanged: writer.takeSharesChanged(),
    freed: writer.takeFreed(),
    failure,
    closed,
  } satisfies WriterAnswer);
}

function work(): void {
  clearTimeout(idleTimer);
  for (;;) {
    drain();
    if (waiting.length === 0) break;
    const batch = waiting.splice(0, atOnce);
    answer(writer.run(batch));
    writer.checkpoint("long");
    isPurging ||= batch.some(([, command]) => mayDetach(command.op));
    if (isPurging && ++transactions % TRANSACTIONS_PER_PURGE === 0) purge();
  }
  if (closing !== undefined) {
    writer.close(closing);
    answer([], true);
    port.close();
    return;
  }
  if (isPurging && writer.garbageCount < GARBAGE_AHEAD) {
    purge();
    setImmediate(work);
    return;
  }
  idleTimer = setTimeout(rest, IDLE_MS).unref();
}

function purge(): void {
  const garbageBefore = writer.garbageCount;
  if (garbageBefore >= GARBAGE_AHEAD) return;
  isPurging = writer.purgeSlice();
  writer.checkpoint("long");
  if (writer.garbageCount > garbageBefore || writer.hasFreed || writer.failure !== undefined) answer([]);
}

/** When idle: shortens the log for the next start, and regains the ballast. */
function rest(): void {
  writer.checkpoint("idle");
  writer.keepBallast();
  if (writer.failure !== undefined) answer([]);
}

const DETACHING: ReadonlySet<string> = new Set([
  "remove",
  "purgeTrash",
  "restore",
  "rename",
  "dropStaged",
  "truncate",
  "dropUpload",
  "dropCopy",
  "finishCopy",
  "beginCopy",
  "commitUpload",
  "dropGarbage",
  "endExport",
  "finishImport",
  "dropImport",
]);

function mayDetach(op: string): boolean {
  return DETACHING.has(op);
}

port.on("message", (request: WriterRequest) => {
  take(request);
  work();
});
// Facts for the main thread, and a first purge of what a crash has left.
answer([]);
work();
