// All lanes at work for a while: until enough was acknowledged, and then to the end of their last calls.
import { setTimeout as sleep } from "node:timers/promises";
import type { LaneEnd } from "#prove/kill/lane.ts";
import { codeName, StatusError } from "#wire/framing/status.ts";
import type { Person } from "./people.ts";

const STUCK_MS = 45_000;
/** Answers of nodes that end, have lost a root or wait for the engine. */
const EXPECTED: ReadonlySet<string> = new Set([
  "STORE_UNAVAILABLE",
  "STORAGE_FAILED",
  "WRONG_NODE",
  "NODE_DRAINING",
  "STARTING",
  "SESSION_UNKNOWN",
]);
/** Statuses of calls whose server is gone. */
const GONE: ReadonlySet<string> = new Set(["UNAVAILABLE", "CANCELLED", "UNKNOWN"]);

/** One shift. */
export class Shift {
  readonly #ends: Promise<readonly LaneEnd[]>;
  readonly #waiting = new Set<{ readonly wanted: number; readonly resolve: () => void }>();
  #isOver = false;
  #acknowledged = 0;

  constructor(people: readonly Person[]) {
    const onAcknowledged = (): void => {
      this.#acknowledged++;
      for (const wait of this.#waiting) if (this.#acknowledged >= wait.wanted) wait.resolve();
    };
    this.#ends = Promise.all(
      people.flatMap(({ lanes, signedIn }) =>
        lanes.map((lane) => lane.work(signedIn, onAcknowledged, () => !this.#isOver)),
      ),
    );
  }

  /** Resolves after so many more acknowledgements, when all lanes have ended, or when none comes: false. */
  async acknowledges(count: number): Promise<boolean> {
    const enough = Promise.withResolvers<boolean>();
    const wait = { wanted: this.#acknowledged + count, resolve: () => enough.resolve(true) };
    this.#waiting.add(wait);
    const stuck = sleep(STUCK_MS, false, { ref: false });
    const isWell = await Promise.race([enough.promise, this.#ends.then(() => true), stuck]);
    this.#waiting.delete(wait);
    return isWell;
  }

  /** Lets the calls under way end; returns what no node may answer, in words. */
  async end(): Promise<string[]> {
    this.#isOver = true;
    return (await this.#ends).flatMap(({ kind, error }) =>
      error === undefined || isExpected(error) ? [] : [`${kind} failed: ${inWords(error)}`],
    );
  }
}

function isExpected(error: unknown): boolean {
  if (!(error instanceof StatusError)) return false;
  const reason = error.metadata.get("svc-reason");
  return reason === undefined ? GONE.has(codeName(error.code)) : EXPECTED.has(reason);
}

function inWords(error: unknown): string {
  if (!(error instanceof StatusError)) return String(error);
  return `${error.metadata.get("svc-reason") ?? codeName(error.code)}: ${error.message}`;
}
