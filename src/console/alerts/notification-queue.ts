// Queue of messages for receivers: one file each, in order, so that no crash loses one (decision D11).
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { errorText, type Logger } from "#base/log.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import { readStateFile } from "#os/state-file.ts";
import { type Notice, notificationShape } from "./notification.ts";

/** Messages in the queue on disk; beyond, the oldest of the receiver with the most are dropped (D11). */
const NOTIFICATION_QUEUE_MAX = 1_000;

/** One message for one receiver. */
export interface QueuedNotification<N = Notice> {
  /** Counts up by one with every message of this console. */
  readonly seq: number;
  readonly receiver: string;
  /** An address that replaces the receiver's own: that of a user with a full quota. */
  readonly to?: string | undefined;
  readonly createdWallMs: number;
  readonly notice: N;
}

const fileShape = z.object({
  schema: z.literal(1),
  seq: z.int(),
  receiver: z.string(),
  to: z.string().optional(),
  createdWallMs: z.number(),
  notice: z.unknown(),
});

const FILE_NAME = /^(\d{16})\.json$/;

/** What the queue needs. */
export interface NotificationQueueDeps {
  readonly folder: string;
  readonly log: Logger;
  /** For tests. */
  readonly capacity?: number;
}

/** All queued messages. Those that cannot be written stay in memory, because they may report a full disk. */
export class NotificationQueue<N = Notice> {
  readonly #deps: NotificationQueueDeps;
  readonly #waiting: Map<number, QueuedNotification<N>>;
  #lastSeq: number;

  private constructor(deps: NotificationQueueDeps, waiting: Map<number, QueuedNotification<N>>) {
    this.#deps = deps;
    this.#waiting = waiting;
    this.#lastSeq = Math.max(0, ...waiting.keys());
  }

  /**
   * Reads the queue. Logs and removes damaged files, which no crash leaves behind. Throws BAD_ARGUMENT for a
   * newer version's.
   */
  static open(deps: NotificationQueueDeps): Promise<NotificationQueue> {
    return NotificationQueue.openOf(deps, notificationShape);
  }

  /** The same for messages of another shape. */
  static async openOf<N>(deps: NotificationQueueDeps, shape: z.ZodType<N>): Promise<NotificationQueue<N>> {
    makePrivateFolder(deps.folder);
    const waiting = new Map<number, QueuedNotification<N>>();
    for (const name of (await readdir(deps.folder)).toSorted()) {
      const path = join(deps.folder, name);
      if (!FILE_NAME.test(name)) {
        // An unfinished write, which `add` never confirmed.
        if (name.startsWith(".") && name.endsWith(".tmp")) await rm(path, { force: true });
        continue;
      }
      const read = await readQueued(path, shape);
      if (read === undefined) {
        deps.log.error("notice_unreadable", { file: path });
        await rm(path, { force: true });
      } else {
        waiting.set(read.seq, read);
      }
    }
    return new NotificationQueue<N>(deps, waiting);
  }

  /** The highest number that the queue has ever had, as far as it knows. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Continues counting after a number that was in use before. */
  countFrom(seq: number): void {
    this.#lastSeq = Math.max(this.#lastSeq, seq);
  }

  /** All queued messages, the oldest first. */
  waiting(): QueuedNotification<N>[] {
    return [...this.#waiting.values()];
  }

  /** The oldest message for a receiver up to a number. */
  next(receiver: string, upToSeq: number): QueuedNotification<N> | undefined {
    for (const queued of this.#waiting.values()) {
      if (queued.seq > upToSeq) return undefined;
      if (queued.receiver === receiver) return queued;
    }
    return undefined;
  }

  /**
   * Adds messages in order; resolves when on stable storage. Returns the dropped ones: a receiver that gets a
   * message for each user displaces its own, and not what others wait for.
   */
  async add(
    messages: readonly Omit<QueuedNotification<N>, "seq">[],
  ): Promise<{ readonly dropped: readonly QueuedNotification<N>[] }> {
    const dropped: QueuedNotification<N>[] = [];
    for (const message of messages) {
      const queued = { ...message, seq: ++this.#lastSeq };
      this.#waiting.set(queued.seq, queued);
      const path = this.#path(queued.seq);
      try {
        await writeFileAtomic(path, `${JSON.stringify({ schema: 1, ...queued })}\n`);
      } catch (error) {
        this.#deps.log.error("notice_not_kept", { error: errorText(error) });
      }
      if (this.#waiting.size <= (this.#deps.capacity ?? NOTIFICATION_QUEUE_MAX)) continue;
      const oldest = this.next(this.#mostWaited(), this.#lastSeq);
      if (oldest === undefined) continue;
      dropped.push(oldest);
      await this.remove(oldest.seq);
    }
    return { dropped };
  }

  /**
   * Removes a message for good; false when it was dropped before. A crash just then restores it: each message
   * is delivered at least once.
   */
  async remove(seq: number): Promise<boolean> {
    const wasThere = this.#waiting.delete(seq);
    await rm(this.#path(seq), { force: true }).catch((error: unknown) => {
      this.#deps.log.error("notice_not_removed", { error: errorText(error) });
    });
    return wasThere;
  }

  /** The receiver with the most messages; of several, that of the oldest. */
  #mostWaited(): string {
    const counts = new Map<string, number>();
    for (const { receiver } of this.#waiting.values()) counts.set(receiver, (counts.get(receiver) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return [...counts].find(([, count]) => count === most)?.[0] ?? "";
  }

  #path(seq: number): string {
    return join(this.#deps.folder, `${seq.toString().padStart(16, "0")}.json`);
  }
}

async function readQueued<N>(path: string, shape: z.ZodType<N>): Promise<QueuedNotification<N> | undefined> {
  const kept = await readStateFile(path, fileShape);
  if (typeof kept === "string") return undefined;
  const notice = shape.safeParse(kept.notice);
  if (!notice.success) return undefined;
  const { schema: _, ...queued } = kept;
  return { ...queued, notice: notice.data };
}
