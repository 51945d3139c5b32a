// The queue of listings that another thread sorts: round-robin over users, one at a time each, with bounded
// waits.
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { FairQueue } from "#base/fair-queue.ts";
import { errorText } from "#base/log.ts";
import { waitAtMost } from "#base/waiting.ts";
import type { ListPage, SortedOrder } from "#storage/contract/storage.ts";
import { listPage } from "#storage/metadata/list-page.ts";
import { notBegun } from "#storage/metadata/sqlite-errors.ts";
import { packRefusal, type RefusedReply, unpackRefusal } from "#storage/writer/write-commands.ts";
import type { ListingAnswer, ListingRequest, ListingWorkerData, SortedQuery } from "./listing-messages.ts";

/** Larger directories that are sorted at once, each of another user; their slices alternate. */
export const SORTED_LISTINGS_AT_ONCE = 4;
/** Sorted listings of larger directories that one user may have under way; more are answered OVERLOADED. */
export const SORTED_LISTINGS_PER_USER = 16;
/**
 * The same for all users. When all are used, the user with the most gives the last one to a user without any.
 */
export const SORTED_LISTINGS_TOTAL = 4_096;

const HEAP_MEBIBYTES = 64;
const YOUNG_MEBIBYTES = 8;
const STOP_WAIT_MS = 2_000;

/** Dependencies of the queue. */
export interface SortedListingsDeps {
  readonly databasePath: string;
  readonly clock: Clock;
  /** Ends all writing: the database itself is damaged. */
  readonly broken: (reason: string) => void;
}

interface Job {
  readonly order: SortedOrder;
  readonly resolve: (page: ListPage) => void;
  readonly reject: (error: unknown) => void;
  /** The request to the thread, once its turn has come. */
  query: SortedQuery | undefined;
  number: number;
  isSettled: boolean;
  readonly onAbort: () => void;
}

/** What becomes of a listing whose thread has ended. */
type LostListing = RefusedReply | { readonly problem: string; readonly isBroken: boolean };

/** Sorts listings of larger directories off the event loop. The thread starts on first use. */
export class SortedListings {
  readonly #deps: SortedListingsDeps;
  readonly #waiting = new FairQueue<Job>();
  readonly #running = new Map<number, Job>();
  /** Users with a running listing. */
  readonly #busy = new Set<string>();
  #count = 0;
  #nextNumber = 1;
  #worker: Worker | undefined;
  #ended: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(deps: SortedListingsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves with the page. Rejects with OVERLOADED when the user, or all together, have too many under way,
   * and with the errors of `order.query`.
   */
  list(order: SortedOrder): Promise<ListPage> {
    if (this.#isStopped) return Promise.reject(closed());
    if (order.signal.aborted) return Promise.reject(order.signal.reason as Error);
    const own = this.#waiting.sizeOf(order.user) + (this.#busy.has(order.user) ? 1 : 0);
    const refusal = this.#refusal(own);
    if (refusal !== undefined) return Promise.reject(refusal);
    const { promise, resolve, reject } = Promise.withResolvers<ListPage>();
    const onAbort = (): void => this.#leave(job);
    const job: Job = { order, resolve, reject, query: undefined, number: 0, isSettled: false, onAbort };
    order.signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(order.user, job);
    this.#count++;
    this.#startNext();
    return promise;
  }

  /** Refuses waiting listings and ends the thread. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (let job = this.#waiting.shift(); job !== undefined; job = this.#waiting.shift())
      this.#settle(job, closed());
    for (const job of this.#running.values()) this.#settle(job, closed());
    this.#running.clear();
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.postMessage("stop" satisfies ListingRequest, []);
    await waitAtMost(this.#deps.clock, STOP_WAIT_MS, this.#ended);
    worker.unref();
  }

  #refusal(own: number): GroveError | undefined {
    if (own >= SORTED_LISTINGS_PER_USER) {
      return new GroveError(
        "OVERLOADED",
        `you have ${own} sorted listings of large directories under way, which is as many as there may be; wait for one, or list by name`,
        { metadata: { limit: String(SORTED_LISTINGS_PER_USER) } },
      );
    }
    if (this.#count < SORTED_LISTINGS_TOTAL) return undefined;
    // A user without any takes the last place of the user with the most.
    const most = this.#waiting.longest();
    const last = own === 0 && most.length > 1 ? most.at(-1) : undefined;
    const refusal = new GroveError(
      "OVERLOADED",
      "too many sorted listings of large directories are under way; try again, or list by name",
    );
    if (last === undefined) return refusal;
    this.#waiting.remove(last.order.user, last);
    this.#settle(last, refusal);
    return undefined;
  }

  /** Gives free places round-robin to users, one to each. */
  #startNext(): void {
    while (this.#running.size < SORTED_LISTINGS_AT_ONCE) {
      const job = this.#waiting.shift(({ order }) => !this.#busy.has(order.user));
      if (job === undefined) return;
      this.#start(job);
    }
  }

  #start(job: Job): void {
    try {
      job.query = job.order.query();
    } catch (error) {
      this.#settle(job, error);
      return;
    }
    job.number = this.#nextNumber++;
    this.#running.set(job.number, job);
    this.#busy.add(job.order.user);
    this.#worker ??= this.#open();
    this.#worker.postMessage({ number: job.number, query: job.query } satisfies ListingRequest, []);
  }

  /** The caller has left: a waiting listing goes, a running one ends after its slice. */
  #leave(job: Job): void {
    if (job.query === undefined) this.#waiting.remove(job.order.user, job);
    else this.#worker?.postMessage({ drop: job.number } satisfies ListingRequest, []);
    this.#settle(job, job.order.signal.reason);
  }

  #take(answer: ListingAnswer): void {
    const job = this.#running.get(answer.number);
    if (job === undefined) return;
    this.#running.delete(answer.number);
    this.#busy.delete(job.order.user);
    if ("page" in answer && job.query !== undefined) {
      const { directoryId, owner } = job.query;
      this.#settle(job, undefined, listPage(answer.page, directoryId, job.query, owner));
    } else if ("refused" in answer) this.#settle(job, unpackRefusal(answer));
    else if ("problem" in answer) {
      if (answer.isBroken) this.#deps.broken(answer.problem);
      const cause = new Error(answer.problem);
      this.#settle(
        job,
        answer.isBroken
          ? new GroveError("CORRUPT", "the database of this node is damaged", { cause })
          : new GroveError("INTERNAL", "the listing could not be sorted", { cause }),
      );
    }
    this.#startNext();
  }

  /** Settles a job once; a second answer is ignored. */
  #settle(job: Job, error: unknown, page?: ListPage): void {
    if (job.isSettled) return;
    job.isSettled = true;
    this.#count--;
    job.order.signal.removeEventListener("abort", job.onAbort);
    if (page === undefined) job.reject(error);
    else job.resolve(page);
  }

  #open(): Worker {
    // The worker lies beside this file in the sources, and beside the bundle.
    const worker = new Worker(new URL(`./listing-worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: { databasePath: this.#deps.databasePath } satisfies ListingWorkerData,
      name: "grove-storage-listings",
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES, maxYoungGenerationSizeMb: YOUNG_MEBIBYTES },
    });
    worker.on("message", (answer: ListingAnswer) => this.#take(answer));
    let end: LostListing = { problem: "the thread that sorts listings has ended", isBroken: false };
    worker.on("error", (error) => {
      end = packRefusal(notBegun(error)) ?? { problem: errorText(error), isBroken: false };
    });
    this.#ended = new Promise((resolve) => {
      worker.on("exit", () => {
        this.#worker = undefined;
        // Listings that these answers start run in a new thread.
        const lost = [...this.#running.keys()];
        for (const number of lost) this.#take({ number, ...end });
        resolve();
      });
    });
    return worker;
  }
}

function closed(): GroveError {
  return new GroveError("STORAGE_FAILED", "the store is closed");
}
