// Runs commands in transactions: many per commit, each in a savepoint, none answered before the commit is on stable storage.
import { rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import type { StorageFacts } from "#storage/contract/storage.ts";
import { BUSY_TIMEOUT_MS, closeWriter, openWriter } from "#storage/metadata/schema.ts";
import {
  diskFull,
  isBrokenDatabase,
  isDatabaseBusy,
  isDatabaseFull,
  storageFailed,
} from "#storage/metadata/sqlite-errors.ts";
import { Ledger } from "#storage/metadata/unit-of-work.ts";
import { Checkpointer } from "./checkpointer.ts";
import { CommandTable } from "./command-table.ts";
import { type Command, packGroveError, packRefusal, type Reply } from "./write-commands.ts";

/** Size of the write-ahead log from which it is brought into the database. */
export const WAL_CHECKPOINT_BYTES = 33_554_432;

/** Commands with their numbers. */
export type NumberedCommands = readonly (readonly [number, Command])[];

/** These free space, or lead up to it, so they may use up what is kept for a full disk. */
const FREEING: ReadonlySet<Command["op"]> = new Set([
  // Frees nothing, but a node must start on a full disk too.
  "boundUploadTimes",
  "closeChunkDirectory",
  "dropGarbage",
  "dropStaged",
  "purgeTrash",
  "dropCopy",
  "dropUpload",
  "remove",
  "trash",
  "unshare",
]);
/** So may what moves an item out of the trash and makes no folder: nothing grows by it (D14). */
function mayUseBallast(command: Command): boolean {
  return FREEING.has(command.op) || (command.op === "restore" && command.maxInodes === 0);
}

/** A frame of the write-ahead log: a page of 4 KiB and its header. */
const WAL_FRAME_BYTES = 4_120;
/** Part of the space kept for a full disk that the log may take of it before it is brought in. */
const BALLAST_SHARE_OF_LOG = 0.25;
/** How long a checkpoint that is overdue waits for readers. */
const RESTART_WAIT_MS = 100;

/** Owner of the only connection that writes. A broken store makes it refuse everything from then on (`failure`). */
export class Writer {
  readonly #db: DatabaseSync;
  readonly #ledger: Ledger;
  readonly #commands: CommandTable;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #savepoint: StatementSync;
  readonly #release: StatementSync;
  readonly #walSize: StatementSync;
  readonly #ballast: { readonly path: string; readonly bytes: number };
  /** True from when the disk was full until the space for that is kept again: what does not free space may not have it. */
  #isBallastSpent = false;
  #failure: string | undefined;
  readonly #checkpointer: Checkpointer;
  /** Frames in the log right after a checkpoint that could not do everything, 0 after one that could. */
  #framesLeft = 0;

  constructor(options: { databasePath: string; ballastPath: string; ballastBytes: number }) {
    const db = openWriter(options.databasePath);
    this.#db = db;
    this.#checkpointer = new Checkpointer(options.databasePath, (reason) => this.fail(reason));
    this.#ballast = { path: options.ballastPath, bytes: options.ballastBytes };
    this.#ledger = new Ledger(db);
    this.#commands = new CommandTable(db, this.#ledger);
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    this.#savepoint = db.prepare("SAVEPOINT command");
    this.#release = db.prepare("RELEASE command");
    this.#walSize = db.prepare("PRAGMA wal_checkpoint(NOOP)");
    this.keepBallast();
  }

  /** Why nothing is written any more. */
  get failure(): string | undefined {
    return this.#failure;
  }

  get facts(): StorageFacts {
    return this.#ledger.facts();
  }

  /** Chunks whose files wait to be unlinked. */
  get garbageCount(): number {
    return this.#ledger.garbageCount;
  }

  /** Owners whose grants may have changed since this was last asked. */
  takeSharesChanged(): string[] {
    return this.#commands.shareRows.takeChangedOwners();
  }

  /** Runs the commands in one transaction and returns their answers once it is durable. */
  run(commands: NumberedCommands): Reply[] {
    if (this.#failure !== undefined) return refuseAll(commands, storageFailed(this.#failure));
    if (this.#isBallastSpent && !this.#regainBallast()) return this.#runOnFullDisk(commands);
    try {
      return this.#transaction(commands);
    } catch (error) {
      this.#undo(error);
      if (this.#failure !== undefined) return refuseAll(commands, storageFailed(this.#failure));
      if (isDatabaseFull(error)) return this.#runOnFullDisk(commands);
      if (isDatabaseBusy(error)) {
        const busy = new GroveError("STORE_UNAVAILABLE", "another program holds the database; try again");
        return refuseAll(commands, busy);
      }
      return refuseAll(commands, internal(error));
    }
  }

  /** Removes a bounded part of what is detached; false when there is nothing left, or when it cannot be done now. */
  purgeSlice(): boolean {
    if (this.#failure !== undefined) return false;
    try {
      if (!this.#commands.contents.hasDetached()) return false;
      this.#begin.run();
      this.#ledger.begin();
      const goesOn = this.#commands.contents.purgeSlice();
      this.#ledger.flush();
      this.#commit.run();
      this.#ledger.committed();
      return goesOn;
    } catch (error) {
      this.#undo(error);
      if (this.#failure !== undefined || this.#isBallastSpent || !isDatabaseFull(error)) return false;
      // Whoever removed it was told that it is gone: its space must come back although nobody asks for anything more.
      this.#giveUpBallast();
      return true;
    }
  }

  /** Brings the write-ahead log into the database once it is long, or at any length when idle. */
  checkpoint(when: "long" | "idle"): void {
    if (this.#failure !== undefined) return;
    try {
      // Most of it is done beside the commits; the rest, which came meanwhile, between two of them, so that the log begins anew.
      const isMostDone = this.#checkpointer.takeDone();
      // It may just have told of a failed flush, after which there is no other.
      if (this.#failure !== undefined || this.#checkpointer.isRunning) return;
      if (isMostDone) return this.#finishCheckpoint("PASSIVE");
      const { log } = this.#walSize.get() as { log: number };
      // What is kept for a full disk would not hold a log of the usual length: to and fro over the trash must not use it up.
      const isTight = this.#isBallastSpent;
      const logBytes = isTight ? this.#ballast.bytes * BALLAST_SHARE_OF_LOG : WAL_CHECKPOINT_BYTES;
      const threshold = when === "idle" ? 1 : logBytes / WAL_FRAME_BYTES + this.#framesLeft;
      if (log < threshold) return;
      if (when === "idle" || isTight) return this.#finishCheckpoint("PASSIVE");
      // Beyond four times the limit some reader must have stood in the way: then wait for it a little.
      if (log > (4 * WAL_CHECKPOINT_BYTES) / WAL_FRAME_BYTES) this.#finishCheckpoint("RESTART");
      else this.#checkpointer.start();
    } catch (error) {
      if (isBrokenDatabase(error)) this.fail(errorText(error));
    }
  }

  #finishCheckpoint(how: "PASSIVE" | "RESTART"): void {
    // A backup's or the scrub's snapshot may last for minutes, and no commit shall wait for that.
    if (how === "RESTART") this.#db.exec(`PRAGMA busy_timeout = ${RESTART_WAIT_MS}`);
    try {
      const done = this.#db.prepare(`PRAGMA wal_checkpoint(${how})`).get() as {
        log: number;
        checkpointed: number;
      };
      this.#framesLeft = done.checkpointed < done.log ? done.log : 0;
    } finally {
      if (how === "RESTART") this.#db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    }
  }

  /** Makes the file whose space is given up on a full disk, unless it is there. */
  keepBallast(): void {
    const { path, bytes } = this.#ballast;
    try {
      if (bytes === 0) {
        this.#isBallastSpent = false;
        return;
      }
      const present = statSync(path, { throwIfNoEntry: false });
      if (present?.size !== bytes) writeFileSync(path, new Uint8Array(bytes), { mode: 0o600 });
      this.#isBallastSpent = false;
    } catch {
      // No space for it now: what is left belongs to the users.
      rmSync(path, { force: true });
    }
  }

  /** Ends all writing. */
  fail(reason: string): void {
    this.#failure ??= reason;
  }

  /** Closes; with everything brought into the database when asked for and possible. */
  close(how: "checkpoint" | "leave"): void {
    if (how === "leave" || this.#failure !== undefined) return;
    try {
      closeWriter(this.#db);
    } catch (error) {
      this.fail(errorText(error));
    }
  }

  #transaction(commands: NumberedCommands): Reply[] {
    this.#begin.run();
    const replies: Reply[] = [];
    for (const [number, command] of commands) {
      this.#savepoint.run();
      this.#ledger.begin();
      try {
        replies.push([number, this.#commands.apply(command)]);
      } catch (error) {
        // A full or broken database has ended the whole transaction.
        if (isBrokenDatabase(error) || isDatabaseFull(error) || !this.#db.isTransaction) throw error;
        this.#db.exec("ROLLBACK TO command");
        this.#ledger.rollback();
        replies.push([number, packRefusal(error) ?? packGroveError(internal(error))]);
      }
      this.#release.run();
    }
    this.#ledger.flush();
    this.#commit.run();
    this.#ledger.committed();
    return replies;
  }

  /** Tries only when there is room enough to try: it happens before every transaction while the disk is full. */
  #regainBallast(): boolean {
    const { path, bytes } = this.#ballast;
    const { bavail, bsize } = statfsSync(dirname(path));
    if (bavail * bsize >= 2 * bytes) this.keepBallast();
    return !this.#isBallastSpent;
  }

  #giveUpBallast(): void {
    rmSync(this.#ballast.path, { force: true });
    this.#isBallastSpent = true;
  }

  /** On a full disk what frees space is done with the space kept for it; the rest is refused. */
  #runOnFullDisk(commands: NumberedCommands): Reply[] {
    this.#giveUpBallast();
    const freeing = commands.filter(([, command]) => mayUseBallast(command));
    const others = commands.filter(([, command]) => !mayUseBallast(command));
    const refused = refuseAll(others, diskFull());
    if (freeing.length === 0) return refused;
    try {
      return [...refused, ...this.#transaction(freeing)];
    } catch (error) {
      this.#undo(error);
      if (this.#failure !== undefined)
        return [...refused, ...refuseAll(freeing, storageFailed(this.#failure))];
      return [...refused, ...refuseAll(freeing, isDatabaseFull(error) ? diskFull() : internal(error))];
    }
  }

  /** After an error that ended a transaction: back to what is committed, and never on after a broken store. */
  #undo(error: unknown): void {
    if (isBrokenDatabase(error)) {
      this.fail(errorText(error));
      return;
    }
    try {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      this.#ledger.discard();
    } catch (rollbackError) {
      this.fail(errorText(rollbackError));
    }
  }
}

function refuseAll(commands: NumberedCommands, error: GroveError): Reply[] {
  return commands.map(([number]) => [number, packGroveError(error)] as const);
}

function internal(error: unknown): GroveError {
  return new GroveError("INTERNAL", `a change failed: ${errorText(error)}`);
}
