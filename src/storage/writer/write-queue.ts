// The main thread's side of the writer: bounded, round-robin over users, batched per event loop turn, final
// in failure.
import { extname } from "node:path";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { currentWaits } from "#base/call-waits.ts";
import { GroveError } from "#base/errors.ts";
import { FairQueue } from "#base/fair-queue.ts";
import { errorText } from "#base/log.ts";
import { Slots } from "#base/slots.ts";
import type { CallWaits } from "#base/wait-times.ts";
import type { Counted } from "#storage/contract/inode.ts";
import type { PropertyOutcome } from "#storage/contract/properties.ts";
import type { StorageFacts } from "#storage/contract/storage.ts";
import type { Trashed, TrashPurge } from "#storage/contract/trash.ts";
import type { StagingChange } from "#storage/contract/upload-store.ts";
import type { ChangeReply } from "#storage/metadata/change-messages.ts";
import type { CopyJob, CopyReply } from "#storage/metadata/copy-messages.ts";
import type { MoveReplies } from "#storage/metadata/move-messages.ts";
import { storageFailed } from "#storage/metadata/sqlite-errors.ts";
import {
  type Command,
  type RefusedReply,
  type RemovalReply,
  type Reply,
  type RestoreReply,
  type RootReply,
  type SharingReply,
  unpackRefusal,
  type WriterAnswer,
  type WriterRequest,
} from "./write-commands.ts";
import type { WriterData } from "./write-worker.ts";

/** Commands that one transaction of the storage writer takes. */
export const STORAGE_BATCH_COMMANDS = 512;
/**
 * Commands in a transaction when several users change something, round-robin; two such transactions are in
 * flight.
 */
export const STORAGE_SHARED_BATCH_COMMANDS = 64;
/** Commands that may wait for the storage writer; more are answered OVERLOADED. */
export const STORAGE_QUEUE_COMMANDS = 16_384;
/** Content of small files that may wait for the storage writer; more is answered OVERLOADED. */
export const STORAGE_QUEUE_BYTES = 67_108_864;

const WRITER_YOUNG_MEBIBYTES = 16;
/** How long two users count as changing something at the same time. */
const SHARED_FOR_MS = 1_000;
/** The writer works on one while the next is in flight. */
const BATCHES_SENT = 2;

/** Answers of single commands. */
interface OwnReplies extends MoveReplies {
  readonly stageKept: { readonly contentId: number } | undefined;
  readonly remove: RemovalReply;
  readonly trash: Trashed;
  readonly restore: RestoreReply;
  readonly purgeTrash: TrashPurge;
  readonly changeProperties: Omit<PropertyOutcome, "inodeDelta">;
}

/** The answer of each command. */
export type ReplyOf<Op extends Command["op"]> = Op extends keyof OwnReplies
  ? OwnReplies[Op]
  : Op extends "createRoot"
    ? RootReply
    : Op extends "stageChunks" | "markDamaged" | "renameCreator" | "renameUser"
      ? number
      : Op extends "beginCopy"
        ? CopyReply
        : Op extends "copySlice"
          ? { readonly job: CopyJob }
          : Op extends "stageUpload" | "dropUpload"
            ? StagingChange
            : Op extends "writeInline" | "writeChunks" | "truncate"
              ? ChangeReply | undefined
              : Op extends "share" | "unshare"
                ? SharingReply
                : Op extends "createFile" | "createDirectory" | "finishCopy" | "rename" | "commitUpload"
                  ? ChangeReply
                  : undefined;

interface Pending {
  readonly bytes: number;
  /** Records the call's waits, on request. */
  readonly waits: CallWaits | undefined;
  readonly submittedAtMs: number;
  sentAtMs: number;
  readonly resolve: (value: Reply[1]) => void;
  readonly reject: (error: Error) => void;
}

/** Events of the queue. */
export interface WriteQueueEvents {
  /** After a commit: readers must renew their snapshot. Called before any promise of it resolves. */
  committed(): void;
  /** Grants of these roots, or their paths, may have changed. */
  sharesChanged(owners: readonly string[]): void;
  /** A purge has reduced the used bytes of these owners. */
  freed(owners: readonly string[]): void;
  /** Chunk files are ready to be unlinked. */
  garbage(): void;
  /** All writing has ended; called once. */
  failed(reason: string): void;
}

/** Sends commands to the writer's thread. */
export class WriteQueue {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #events: WriteQueueEvents;
  /** A command's number is its place here until its answer. */
  #pending = new Slots<Pending>();
  #outgoing = new FairQueue<[number, Command]>();
  /** Commands at the writer without an answer. */
  #sent = 0;
  /** The last user with a change, its time, and the end of shared mode; steady time. */
  #lastParty = "";
  #lastAtMs = Number.NEGATIVE_INFINITY;
  #sharedUntilMs = Number.NEGATIVE_INFINITY;
  #queuedBytes = 0;
  #isScheduled = false;
  #failure: string | undefined;
  #isClosing = false;
  #hasExited = false;
  #closed: (() => void) | undefined;
  #facts: StorageFacts = { chunkCount: 0, inodeCount: 0, trashBytes: 0, stagingBytes: 0 };
  readonly #ready = Promise.withResolvers<void>();

  constructor(data: Omit<WriterData, "port">, events: WriteQueueEvents) {
    this.#events = events;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#port.on("message", (answer: WriterAnswer) => this.#take(answer));
    // The worker lies beside this file in the sources, and beside the bundle.
    const url = new URL(`./write-worker${extname(import.meta.url)}`, import.meta.url);
    this.#worker = new Worker(url, {
      workerData: { ...data, port: port2 } satisfies WriterData,
      transferList: [port2],
      name: "grove-storage-writer",
      // Its objects live for one transaction; a large young generation would only cost memory.
      resourceLimits: { maxYoungGenerationSizeMb: WRITER_YOUNG_MEBIBYTES },
    });
    this.#worker.on("error", (error) => this.fail(`the writer's thread died: ${errorText(error)}`));
    this.#worker.on("exit", () => {
      this.#hasExited = true;
      if (!this.#isClosing) this.fail("the writer's thread ended");
      this.#closed?.();
    });
  }

  /** Resolves when the thread has opened the database. Rejects with STORAGE_FAILED when it cannot. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Reason for which every change is refused. */
  get failure(): string | undefined {
    return this.#failure;
  }

  get facts(): StorageFacts {
    return this.#facts;
  }

  /**
   * Runs a command; copies its bytes before it returns. Rejects with the command's refusal, OVERLOADED when
   * too much waits, and STORAGE_FAILED after a failure or close.
   */
  submit<Op extends Command["op"]>(command: Extract<Command, { op: Op }>): Promise<Counted<ReplyOf<Op>>> {
    if (this.#failure !== undefined) return Promise.reject(storageFailed(this.#failure));
    if (this.#isClosing) return Promise.reject(storageFailed("it is being closed"));
    const bytes = bytesOf(command)?.length ?? 0;
    if (this.#pending.size >= STORAGE_QUEUE_COMMANDS || this.#queuedBytes + bytes > STORAGE_QUEUE_BYTES) {
      return Promise.reject(new GroveError("OVERLOADED", "too many changes wait for the disk; try again"));
    }
    this.#queuedBytes += bytes;
    const party = partyOf(command);
    this.#noteParty(party);
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => this.#send());
    }
    const waits = currentWaits();
    const submittedAtMs = waits === undefined ? 0 : performance.now();
    return new Promise((resolve, reject) => {
      const settle = { resolve: resolve as Pending["resolve"], reject };
      const pending = { bytes, waits, submittedAtMs, sentAtMs: submittedAtMs, ...settle };
      this.#outgoing.push(party, [this.#pending.add(pending), withOwnBytes(command)]);
    });
  }

  /** Ends all writing: waiting and later commands are refused with STORAGE_FAILED. */
  fail(reason: string): void {
    if (this.#failure !== undefined) return;
    this.#failure = reason;
    this.#ready.reject(storageFailed(reason));
    this.#ready.promise.catch(() => undefined);
    this.#outgoing = new FairQueue();
    const error = storageFailed(reason);
    const refused = this.#pending;
    this.#pending = new Slots();
    for (const pending of refused) pending.reject(error);
    this.#queuedBytes = 0;
    this.#events.failed(reason);
  }

  /**
   * Waits for running commands, brings the log into the database unless a failure came first, and ends the
   * thread.
   */
  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.#send(Number.POSITIVE_INFINITY);
    if (this.#hasExited) {
      this.#port.close();
      return;
    }
    const closed = new Promise<void>((resolve) => {
      this.#closed = resolve;
    });
    const how = this.#failure === undefined ? "checkpoint" : "leave";
    this.#port.postMessage({ close: how } satisfies WriterRequest, []);
    await closed;
    this.#port.close();
    await this.#worker.terminate();
  }

  /** After many changes of one user, another user's command waits for two short transactions only. */
  #send(most: number = BATCHES_SENT * this.#batchCommands() - this.#sent): void {
    this.#isScheduled = false;
    const commands: [number, Command][] = [];
    const buffers: ArrayBuffer[] = [];
    while (commands.length < most) {
      const next = this.#outgoing.shift();
      if (next === undefined) break;
      commands.push(next);
      const pending = this.#pending.at(next[0]);
      if (pending?.waits !== undefined) pending.sentAtMs = performance.now();
      // Copied on entry, so it moves now without another copy.
      const bytes = bytesOf(next[1]);
      if (bytes !== undefined) buffers.push(bytes.buffer as ArrayBuffer);
    }
    if (commands.length === 0) return;
    this.#sent += commands.length;
    this.#port.postMessage({ commands, atOnce: this.#batchCommands() } satisfies WriterRequest, buffers);
  }

  #noteParty(party: string): void {
    if (party === "") return;
    const nowMs = performance.now();
    if (party !== this.#lastParty && nowMs - this.#lastAtMs < SHARED_FOR_MS)
      this.#sharedUntilMs = nowMs + SHARED_FOR_MS;
    this.#lastParty = party;
    this.#lastAtMs = nowMs;
  }

  /** Commands of one transaction: enough to make a flush worth it for a lone user, few when others wait. */
  #batchCommands(): number {
    return performance.now() < this.#sharedUntilMs ? STORAGE_SHARED_BATCH_COMMANDS : STORAGE_BATCH_COMMANDS;
  }

  #take(answer: WriterAnswer): void {
    this.#facts = answer.facts;
    this.#events.committed();
    if (answer.sharesChanged.length > 0) this.#events.sharesChanged(answer.sharesChanged);
    if (answer.freed.length > 0) this.#events.freed(answer.freed);
    this.#sent -= answer.replies.length;
    for (const [number, value] of answer.replies) this.#settle(number, value);
    if (this.#outgoing.size > 0 && answer.failure === undefined) this.#send();
    if (answer.failure !== undefined) this.fail(answer.failure);
    else if (answer.hasGarbage && !this.#isClosing) this.#events.garbage();
    this.#ready.resolve();
    if (answer.closed) this.#closed?.();
  }

  #settle(number: number, value: Reply[1]): void {
    const pending = this.#pending.at(number);
    // Refused before, when this side found the failure.
    if (pending === undefined) return;
    this.#pending.remove(number);
    this.#queuedBytes -= pending.bytes;
    const { waits, submittedAtMs, sentAtMs } = pending;
    waits?.add("queue", sentAtMs - submittedAtMs);
    waits?.add("disk", performance.now() - sentAtMs);
    if (isRefused(value)) pending.reject(unpackRefusal(value));
    else pending.resolve(value);
  }
}

/** The user of a command; empty for the node's own. Commands of one party keep their order. */
function partyOf(command: Command): string {
  if ("by" in command) return command.by;
  return "owner" in command ? command.owner : "";
}

/** Content of a small file that comes with a command. */
function bytesOf(command: Command): Uint8Array | undefined {
  if ("data" in command) return command.data;
  return command.op === "commitUpload" && "inline" in command.content ? command.content.inline : undefined;
}

/** A slice of a 64 KiB read buffer would be cloned with the whole buffer. */
function withOwnBytes(command: Command): Command {
  if ("data" in command) return { ...command, data: new Uint8Array(command.data) };
  if (command.op !== "commitUpload" || !("inline" in command.content)) return command;
  const { content } = command;
  return { ...command, content: { ...content, inline: new Uint8Array(content.inline) } };
}

function isRefused(value: Reply[1]): value is RefusedReply {
  return typeof value === "object" && "refused" in value;
}
