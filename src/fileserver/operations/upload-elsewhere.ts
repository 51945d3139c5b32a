// An upload's bytes as its deciding half sees them where another thread has the connection.
import { GroveError } from "#base/errors.ts";
import type { UploadOrder, UploadReport } from "#fileserver/transfers/transfer-messages.ts";
import type {
  ContentElsewhere,
  ElsewhereReports,
  ElsewhereStart,
  EndedContent,
} from "#storage/contract/content-elsewhere.ts";
import type { CallLink } from "#wire/grpc/call-context.ts";

/** See ContentElsewhere: each method is an order over the call's link. */
export class UploadElsewhere implements ContentElsewhere {
  readonly #link: CallLink;
  readonly #signal: AbortSignal;
  #reports: ElsewhereReports | undefined;
  #taking: PromiseWithResolvers<number> | undefined;
  /** Checksums of messages that were written before they were decided. */
  readonly #taken: number[] = [];
  #isAhead = false;
  #ending: PromiseWithResolvers<EndedContent> | undefined;
  #stopping: PromiseWithResolvers<void> | undefined;
  #isLost = false;

  /** The signal is that of the call. */
  constructor(link: CallLink, signal: AbortSignal) {
    this.#link = link;
    this.#signal = signal;
    link.onTold = (message) => this.#take(message as UploadReport);
    link.onLost = () => this.#lost();
    const onAbort = (): void => this.#fail(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  }

  begin(start: ElsewhereStart, reports: ElsewhereReports): void {
    this.#reports = reports;
    // All bytes of a known size are reserved: the thread need not wait for each decision.
    this.#isAhead = start.sizeBytes !== undefined;
    if (this.#isAhead) this.#link.flow();
    this.#order({ op: "begin", ...start, isAhead: this.#isAhead });
  }

  lend(position: number, descriptor: number | undefined): void {
    this.#order({ op: "file", position, descriptor });
  }

  take(): Promise<number> {
    this.#signal.throwIfAborted();
    const taken = this.#taken.shift();
    if (taken !== undefined) return Promise.resolve(taken);
    this.#taking = Promise.withResolvers();
    if (!this.#isAhead) this.#order({ op: "take" });
    return this.#taking.promise;
  }

  flushed(position: number): void {
    this.#order({ op: "flushed", position });
  }

  end(): Promise<EndedContent> {
    if (this.#isLost) return Promise.reject(threadLost());
    this.#ending = Promise.withResolvers();
    this.#order({ op: "end" });
    return this.#ending.promise;
  }

  stop(): Promise<void> {
    if (this.#isLost) return Promise.resolve();
    this.#stopping = Promise.withResolvers();
    this.#order({ op: "stop" });
    return this.#stopping.promise;
  }

  #order(order: UploadOrder): void {
    this.#link.tell(order);
  }

  #take(report: UploadReport): void {
    switch (report.op) {
      case "took":
        if (this.#taking === undefined) this.#taken.push(report.crc32);
        this.#taking?.resolve(report.crc32);
        this.#taking = undefined;
        break;
      case "written":
        this.#reports?.written(report.chunk);
        break;
      case "failed":
        this.#reports?.failed(Object.assign(new Error(report.text), { code: report.code }));
        break;
      case "ended":
        this.#ending?.resolve(report.content);
        break;
      case "stopped":
        this.#stopping?.resolve();
    }
  }

  /** Ends the wait for the client. */
  #fail(reason: unknown): void {
    this.#taking?.reject(reason);
    this.#taking = undefined;
  }

  #lost(): void {
    this.#isLost = true;
    this.#fail(threadLost());
    this.#ending?.reject(threadLost());
    this.#stopping?.resolve();
  }
}

function threadLost(): GroveError {
  return new GroveError("INTERNAL", "the thread of the connection has ended");
}
