// Commits groups of changes to PostgreSQL under a lease's epoch, and finds out what became of lost answers.
import type pg from "pg";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { type PackedRows, packRows } from "./packed-rows.ts";
import { leave } from "./shared-line.ts";
import type { TableEffects } from "./table-rows.ts";

/** A root that this process holds, with the number of the batch that was committed last. */
export interface HeldRoot {
  readonly number: number;
  readonly epoch: number;
  batch: number;
}

/** Dependencies of a commit client. */
export interface CommitClientDeps {
  /** Makes a connection to the server that takes changes. */
  readonly connect: () => Promise<pg.Client>;
  readonly clock: Clock;
  /** Makes a name for a group that no other has. */
  readonly groupId: () => string;
  /** How long an answer may take before it counts as lost. */
  readonly answerMs: number;
  /** Pause between two tries. */
  readonly pauseMs: number;
}

/** What became of a group: it was committed, certainly not, or a newer holder's epoch hides it. */
type Outcome = "committed" | "absent" | "fenced" | "unknown";

/** Thrown when other processes have taken over some of a group's roots. */
export class FencedError extends Error {
  override readonly name = "FencedError";
  /** Numbers of the roots that are not held any more. */
  readonly lost: readonly number[];
  /** False when they were taken over twice, so that the group may have been committed before. */
  readonly isAbsent: boolean;

  constructor(lost: readonly number[], isAbsent: boolean) {
    super("another process has taken over the root");
    this.lost = lost;
    this.isAbsent = isAbsent;
  }
}

/** SQLSTATEs after which the same group may pass: conflicts, locks, and a server that ends or begins. */
const PASSING = /^(?:40001|40P01|55P03|57P0[1-5]|57014|53300|25006|25P03|08...)$/;

/** SQLSTATE of a database whose disk is full: it took nothing of the group. */
const FULL = "53100";

/** A statement, prepared once for each connection where it has a name. */
interface Statement {
  readonly name?: string;
  readonly text: string;
}

/** Every group is sent by it: PostgreSQL would parse and plan it anew each time. */
const COMMIT: Statement = {
  name: "commit_rows",
  text: "SELECT commit_rows($1, $2, $3, $4, $5, $6, $7, $8, $9)",
};
const RESOLVE: Statement = {
  text: 'SELECT root_number AS "number", outcome, last_batch AS batch FROM resolve_group($1, $2, $3)',
};

/** Sends one group at a time over a connection of its own. */
export class CommitClient {
  readonly #deps: CommitClientDeps;
  #client: pg.Client | undefined;
  #isClosed = false;

  constructor(deps: CommitClientDeps) {
    this.#deps = deps;
  }

  /**
   * Commits the effects in all the roots or in none; resolves when they are durable. Roots come in the order
   * of their numbers. It tries again until it knows the outcome. Throws FencedError, STORE_UNAVAILABLE once
   * closed and for a database without room, and the database's refusal of the rows themselves.
   */
  async commit(roots: readonly HeldRoot[], effects: readonly TableEffects[]): Promise<void> {
    const packed = packRows(effects);
    for (;;) {
      const group = this.#deps.groupId();
      const failure = await this.#send(group, roots, packed);
      if (failure === undefined) {
        for (const root of roots) root.batch++;
        return;
      }
      const outcomes = await this.#resolve(group, roots);
      if (outcomes.includes("committed")) return;
      const lost = roots.filter((_, at) => outcomes[at] !== "absent");
      if (lost.length > 0) {
        // Where one root still has the holder's epoch, it tells for all.
        const isAbsent = outcomes.some((outcome) => outcome !== "unknown");
        throw new FencedError(
          lost.map(({ number }) => number),
          isAbsent,
        );
      }
      const code = codeOf(failure);
      if (code === FULL) throw full(failure);
      if (/^[0-9A-Z]{5}$/.test(code) && !PASSING.test(code)) throw failure;
      await this.#pause();
    }
  }

  /** Ends the connection. A commit under way stays unresolved: the roots' next holder finds what it left. */
  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  /** Undefined once durable; else why that is not known. */
  async #send(
    group: string,
    roots: readonly HeldRoot[],
    { steps, counts, numbers, texts, bytes }: PackedRows,
  ): Promise<Error | undefined> {
    const values = [
      group,
      roots.map(({ number }) => number),
      roots.map(({ epoch }) => epoch),
      roots.map(({ batch }) => batch + 1),
      steps,
      counts,
      numbers,
      texts,
      bytes,
    ];
    return this.#ask(COMMIT, values).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
    );
  }

  /** Asks until the database answers. It waits there for the call whose answer was lost. */
  async #resolve(group: string, roots: readonly HeldRoot[]): Promise<Outcome[]> {
    const epochs = roots.map(({ epoch }) => epoch);
    const numbers = roots.map(({ number }) => number);
    for (;;) {
      if (this.#isClosed) throw closed();
      // Never the connection whose answer was lost: its session may still hold the locks.
      this.#drop();
      try {
        const rows = (await this.#ask(RESOLVE, [group, numbers, epochs])) as {
          number: number;
          outcome: Outcome;
          batch: number;
        }[];
        return roots.map((root) => {
          const row = rows.find(({ number }) => number === root.number);
          const outcome = row?.outcome ?? "fenced";
          root.batch = row?.batch ?? root.batch;
          return outcome;
        });
      } catch {
        await this.#pause();
      }
    }
  }

  /**
   * The answer of one statement that is a transaction by itself. A warning is a lost answer: the server says
   * with it that a commit has stopped waiting for its standby.
   */
  async #ask(statement: Statement, values: readonly unknown[]): Promise<readonly object[]> {
    this.#client ??= await this.#deps.connect();
    const client = this.#client;
    if (this.#isClosed) {
      this.#drop();
      throw closed();
    }
    const warnings: string[] = [];
    const note = (notice: { severity?: string | undefined; message?: string | undefined }): void => {
      if (notice.severity === "WARNING") warnings.push(notice.message ?? "");
    };
    client.on("notice", note);
    const cancel = this.#deps.clock.after(
      this.#deps.answerMs,
      () => void client.end().catch(() => undefined),
    );
    try {
      const { rows } = await client.query({ ...statement, values: [...values] });
      if (warnings.length > 0) throw new Error(warnings[0]);
      return rows as object[];
    } catch (error) {
      this.#drop();
      throw error;
    } finally {
      cancel();
      client.off("notice", note);
    }
  }

  async #pause(): Promise<void> {
    if (this.#isClosed) throw closed();
    await new Promise<void>((resolve) => this.#deps.clock.after(this.#deps.pauseMs, resolve));
  }

  #drop(): void {
    if (this.#client !== undefined) leave(this.#client);
    this.#client = undefined;
  }
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

function closed(): GroveError {
  return new GroveError("STORE_UNAVAILABLE", "the shared engine is being closed");
}

function full(cause: Error): GroveError {
  const text = "the shared database has no space left on its disk; nothing was changed";
  return new GroveError("STORE_UNAVAILABLE", text, { cause });
}
