// The main thread's side of the writer: bounded, users in turn, one message per turn of the event loop each way, and final in failure.
import { extname } from "node:path";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { type CallWaits, currentWaits } from "#base/call-waits.ts";
import { GroveError } from "#base/errors.ts";
import { FairQueue } from "#base/fair-queue.ts";
import { errorText } from "#base/log.ts";
import type { Counted } from "#storage/contract/inode.ts";
import type { StorageFacts } from "#storage/contract/storage.ts";
import type { Trashed, TrashPurge } from "#storage/contract/trash.ts";
import type { StagingChange } from "#storage/contract/upload-store.ts";
import type { ChangeReply } from "#storage/metadata/change-messages.ts";
import type { CopyJob, CopyReply } from "#storage/metadata/copy-messages.ts";
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
/** Where several users change something, a transaction takes no more than so many, of each in turn; two are on their way. */
export const STORAGE_SHARED_BATCH_COMMANDS = 64;
/** Commands that may wait for the storage writer; more are answered OVERLOADED. */
export const STORAGE_QUEUE_COMMANDS = 16_384;
/** Content of small files that may wait for the storage writer; more is answered OVERLOADED. */
export const STORAGE_QUEUE_BYTES = 67_108_864;

const WRITER_YOUNG_MEBIBYTES = 16;
/** How long two users count as changing something at a time. */
const SHARED_FOR_MS = 1_000;
/** One is worked on while the next is on its way. */
const BATCHES_SENT = 2;

/** Commands with an answer of their own. */
interface OwnReplies {
  readonly remove: RemovalReply;
  readonly trash: Trashed;
  readonly restore: RestoreReply;
  readonly purgeTrash: TrashPurge;
}

/** What each command is answered with. */
export type ReplyOf<Op extends Command["op"]> = Op extends keyof OwnReplies
  ? OwnReplies[Op]
  : Op extends "createRoot"
    ? RootReply
    : Op extends "stageChunks" | "markDamaged"
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
  /** Where the call's waits are noted, if somebody asks. */
  readonly waits: CallWaits | undefined;
  readonly submittedAtMs: number;
  sentAtMs: number;
  readonly resolve: (value: Reply[1]) => void;
  readonly reject: (error: Error) => void;
}

/** How the queue tells of what comes back. */
export interface WriteQueueEvents {
  /** Something was committed: whoever reads must look again. Called before any promise of it resolves. */
  committed(): void;
  /** Grants of these roots, or the paths of them, may have changed. */
  sharesChanged(owners: readonly string[]): void;
  /** There are chunk files to unlink. */
  garbage(): void;
  /** Nothing is written any more; called once. */
  failed(reason: string): void;
}

/** Hands commands to the writer's thread. */
export class WriteQueue {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #events: WriteQueueEvents;
  readonly #pending = new Map<number, Pending>();
  #outgoing = new FairQueue<[number, Command]>();
  /** Commands on their way to the writer, or back. */
  #sent = 0;
  /** Who has changed something last, when, and until when others do as well; steady time. */
  #lastParty = "";
  #lastAtMs = Number.NEGATIVE_INFINITY;
  #sharedUntilMs = Number.NEGATIVE_INFINITY;
  #queuedBytes = 0;
  #nextNumber = 1;
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
    // Beside this file in the sources, and beside the bundle that holds it.
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

  /** Why every change is refused. */
  get failure(): string | undefined {
    return this.#failure;
  }

  get facts(): StorageFacts {
    return this.#facts;
  }

  /**
   * Runs a command. Its bytes are copied before this returns. Rejects with the command's refusal, OVERLOADED when too much waits, and
   * STORAGE_FAILED after a failure and after close.
   */
  submit<Op extends Command["op"]>(command: Extract<Command, { op: Op }>): Promise<Counted<ReplyOf<Op>>> {
    if (this.#failure !== undefined) return Promise.reject(storageFailed(this.#failure));
    if (this.#isClosing) return Promise.reject(storageFailed("it is being closed"));
    const bytes = bytesOf(command)?.length ?? 0;
    if (this.#pending.size >= STORAGE_QUEUE_COMMANDS || this.#queuedBytes + bytes > STORAGE_QUEUE_BYTES) {
      return Promise.reject(new GroveError("OVERLOADED", "too many changes wait for the disk; try again"));
    }
    this.#queuedBytes += bytes;
    const number = this.#nextNumber++;
    const party = partyOf(command);
    this.#noteParty(party);
    this.#outgoing.push(party, [number, withOwnBytes(command)]);
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => this.#send());
    }
    const waits = currentWaits();
    const submittedAtMs = waits === undefined ? 0 : performance.now();
    return new Promise((resolve, reject) => {
      const settle = { resolve: resolve as Pending["resolve"], reject };
      this.#pending.set(number, { bytes, waits, submittedAtMs, sentAtMs: submittedAtMs, ...settle });
    });
  }

  /** Ends all writing: what waits and what comes is refused with STORAGE_FAILED. */
  fail(reason: string): void {
    if (this.#failure !== undefined) return;
    this.#failure = reason;
    this.#ready.reject(storageFailed(reason));
    this.#ready.promise.catch(() => undefined);
    this.#outgoing = new FairQueue();
    const error = storageFailed(reason);
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
    this.#queuedBytes = 0;
    this.#events.failed(reason);
  }

  /** Lets running commands end, brings the log into the database unless something failed, and ends the thread. */
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

  /** Where one user has changed much, the command of another waits for two short transactions, and not for all that one has asked for. */
  #send(most: number = BATCHES_SENT * this.#batchCommands() - this.#sent): void {
    this.#isScheduled = false;
    const commands: [number, Command][] = [];
    const buffers: ArrayBuffer[] = [];
    while (commands.length < most) {
      const next = this.#outgoing.shift();
      if (next === undefined) break;
      commands.push(next);
      const pending = this.#pending.get(next[0]);
      if (pending?.waits !== undefined) pending.sentAtMs = performance.now();
      // Copied when it was taken in, so it can move instead of being copied once more.
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

  /** Commands of one transaction: as many as make a flush worth it where one user is alone, few where others wait for it. */
  #batchCommands(): number {
    return performance.now() < this.#sharedUntilMs ? STORAGE_SHARED_BATCH_COMMANDS : STORAGE_BATCH_COMMANDS;
  }

  #take(answer: WriterAnswer): void {
    this.#facts = answer.facts;
    this.#events.committed();
    if (answer.sharesChanged.length > 0) this.#events.sharesChanged(answer.sharesChanged);
    this.#sent -= answer.replies.length;
    for (const [number, value] of answer.replies) this.#settle(number, value);
    if (this.#outgoing.size > 0 && answer.failure === undefined) this.#send();
    if (answer.failure !== undefined) this.fail(answer.failure);
    else if (answer.hasGarbage && !this.#isClosing) this.#events.garbage();
    this.#ready.resolve();
    if (answer.closed) this.#closed?.();
  }

  #settle(number: number, value: Reply[1]): void {
    const pending = this.#pending.get(number);
    // Refused already, when the failure was found on this side.
    if (pending === undefined) return;
    this.#pending.delete(number);
    this.#queuedBytes -= pending.bytes;
    const { waits, submittedAtMs, sentAtMs } = pending;
    waits?.add("queue", sentAtMs - submittedAtMs);
    waits?.add("disk", performance.now() - sentAtMs);
    if (isRefused(value)) pending.reject(unpackRefusal(value));
    else pending.resolve(value);
  }
}

/** On whose behalf a command is; empty for the node's own. Commands of one party keep their order. */
function partyOf(command: Command): string {
  if ("by" in command) return command.by;
  return "owner" in command ? command.owner : "";
}

/** Content of a small file that comes with a command. */
function bytesOf(command: Command): Uint8Array | undefined {
  if ("data" in command) return command.data;
  return command.op === "commitUpload" && "inline" in command.content ? command.content.inline : undefined;
}

/** A slice of a 64 KiB read buffer would be cloned with all of its buffer. */
function withOwnBytes(command: Command): Command {
  if ("data" in command) return { ...command, data: new Uint8Array(command.data) };
  if (command.op !== "commitUpload" || !("inline" in command.content)) return command;
  const { content } = command;
  return { ...command, content: { ...content, inline: new Uint8Array(content.inline) } };
}

function isRefused(value: Reply[1]): value is RefusedReply {
  return typeof value === "object" && "refused" in value;
}
