// Sends commands to the writer of the shared engine, which takes them root by root.
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { type Counted, type InodeId, rootNumberOf, StaleAccessError } from "#storage/contract/inode.ts";
import { storageFailed } from "#storage/metadata/sqlite-errors.ts";
import type { SharedWriter } from "#storage/shared/shared-writer.ts";
import { heldElsewhere } from "#storage/shared/writer-refusals.ts";
import { noSuchUpload } from "#storage/writer/upload-commands.ts";
import type { Command } from "#storage/writer/write-commands.ts";
import { type ReplyOf, STORAGE_QUEUE_BYTES, STORAGE_QUEUE_COMMANDS } from "#storage/writer/write-queue.ts";
import type { HeldRoots } from "./held-roots.ts";

/** More than there are reports of damage at once. */
const DAMAGED_CHUNKS_KNOWN = 4_096;

/** Codes of failures after which a change may have been made. */
const UNSURE = ["INTERNAL", "STORAGE_FAILED", "STORE_UNAVAILABLE"] as const;

/** Dependencies of the queue. */
export interface SharedQueueDeps {
  readonly writer: Pick<SharedWriter, "submit">;
  readonly roots: Pick<HeldRoots, "of" | "withNumber">;
  /** The owner of the root that an upload belongs to; undefined for an unknown one. */
  readonly ownerOfUpload: (uploadId: string) => string | undefined;
}

/** As WriteQueue, for the parts of storage that both engines have. */
export class SharedQueue {
  readonly #deps: SharedQueueDeps;
  #failure: string | undefined;
  #waiting = 0;
  #waitingBytes = 0;
  #unsureTotal = 0;
  /** Owners of chunks that were found damaged, for as long as their marks may take. */
  readonly #damaged = new LRUCache<number, string>(atMost(DAMAGED_CHUNKS_KNOWN));

  constructor(deps: SharedQueueDeps) {
    this.#deps = deps;
  }

  /** Reason for which every change is refused. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Changes that failed otherwise than by a refusal: whether they were made is not said by that. */
  get unsureTotal(): number {
    return this.#unsureTotal;
  }

  /** Refuses all later changes. */
  fail(reason: string): void {
    this.#failure ??= reason;
  }

  /** Says whose chunk is damaged: its number alone does not. */
  noteDamaged(chunkId: number, fileId: InodeId): void {
    const owner = this.#ownerOf(fileId);
    if (owner !== undefined) this.#damaged.set(chunkId, owner);
  }

  /**
   * Runs a command. Rejects with its refusal, OVERLOADED, WRONG_NODE, NO_SUCH_UPLOAD for a drop of what no held
   * root has, and STORAGE_FAILED after a failure.
   */
  async submit<Op extends Command["op"]>(
    command: Extract<Command, { op: Op }>,
  ): Promise<Counted<ReplyOf<Op>>> {
    if (this.#failure !== undefined) throw storageFailed(this.#failure);
    const owner = this.#rootOf(command);
    if (owner === undefined || this.#deps.roots.of(owner) === undefined) throw heldElsewhere();
    const bytes = bytesOf(command);
    if (this.#waiting >= STORAGE_QUEUE_COMMANDS || this.#waitingBytes + bytes > STORAGE_QUEUE_BYTES) {
      throw new GroveError("OVERLOADED", "too many changes wait for the shared database; try again");
    }
    this.#waiting++;
    this.#waitingBytes += bytes;
    try {
      return await this.#deps.writer.submit<Op>(owner, command);
    } catch (error) {
      if (!isRefusal(error)) this.#unsureTotal++;
      throw error;
    } finally {
      this.#waiting--;
      this.#waitingBytes -= bytes;
    }
  }

  #rootOf(command: Command): string | undefined {
    if ("owner" in command) return command.owner;
    switch (command.op) {
      case "stageUpload":
        return this.#deps.ownerOfUpload(command.uploadId);
      case "dropUpload": {
        const owner = this.#deps.ownerOfUpload(command.uploadId);
        if (owner === undefined) throw noSuchUpload();
        return owner;
      }
      case "dropStaged":
        return this.#ownerOf(command.contentId);
      case "dropCopy":
        return this.#ownerOf(command.job.sourceId);
      case "markDamaged":
        return "fileId" in command.target
          ? this.#ownerOf(command.target.fileId)
          : this.#damaged.get(command.target.chunkId);
      default:
        throw new Error(`the shared engine has no root for ${command.op}`);
    }
  }

  #ownerOf(id: number): string | undefined {
    return this.#deps.roots.withNumber(rootNumberOf(id))?.owner;
  }
}

/** The refusal of a root that another process holds, or that does not exist. */
export function notHere(): GroveError {
  return new GroveError("NO_SUCH_PATH", "there is no such root on this node");
}

function isRefusal(error: unknown): boolean {
  return error instanceof StaleAccessError || (isGroveError(error) && !isGroveError(error, ...UNSURE));
}

function bytesOf(command: Command): number {
  if ("data" in command) return command.data.length;
  return command.op === "commitUpload" && "inline" in command.content ? command.content.inline.length : 0;
}
