// Counts and times operations when they end (spec 4.6.4), and separates the node's failures from refusals.
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { settled } from "#base/settled.ts";
import { RowsToCome, whenRowsAreHere } from "#storage/contract/rows-to-come.ts";
import type { NodeTelemetry, OperationKind, OperationOutcome } from "#telemetry/node-telemetry.ts";
import { outcomeOf } from "./operation-outcome.ts";

/** Records every operation in the node's counters. */
export class OperationMeter {
  readonly #telemetry: NodeTelemetry;
  readonly #clock: Clock;
  /** Errors that operations have counted, so that the end of the call does not count them again. */
  readonly #counted = new WeakSet();

  constructor(deps: { telemetry: NodeTelemetry; clock: Clock }) {
    this.#telemetry = deps.telemetry;
    this.#clock = deps.clock;
  }

  /** Runs an operation that answers now or later. One whose rows have to come first runs again. */
  run<R>(kind: OperationKind, operation: () => R): R | Promise<Awaited<R>> {
    const startMs = this.#clock.steadyMs();
    return settled(
      () => whenRowsAreHere(operation),
      (error) => {
        const outcome = error === undefined ? "done" : this.#noted(error);
        this.#telemetry.operation(kind, this.#clock.steadyMs() - startMs, outcome);
      },
    );
  }

  /** Runs an asynchronous operation; what it throws at once is a rejection too. */
  async later<T>(kind: OperationKind, operation: () => Promise<T>): Promise<T> {
    return this.run(kind, () => operation().catch(asPassing));
  }

  /** Counts a successful call that is no operation, such as a sign-in. */
  callDone(): void {
    this.#telemetry.call("done");
  }

  /** Counts the failure of a call beside any operation; skips what an operation has counted. */
  callFailed(error: unknown): void {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    if (isKey(cause) && this.#counted.has(cause)) return;
    if (isKey(error) && this.#counted.has(error)) return;
    if (outcomeOf(error) === "failed") this.#telemetry.call("failed");
  }

  #noted(error: unknown): OperationOutcome {
    if (isKey(error)) this.#counted.add(error);
    return outcomeOf(error);
  }
}

/** A change cannot run again from its middle: its caller can. */
function asPassing(error: unknown): never {
  if (!(error instanceof RowsToCome)) throw error;
  throw new GroveError(
    "STORE_UNAVAILABLE",
    "what this needs has to come from the shared database; try again",
  );
}

function isKey(value: unknown): value is WeakKey {
  return typeof value === "object" && value !== null;
}
