// Runs commands in transactions: many per commit, each in a savepoint, answered once the commit is on stable
// storage.
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
import { PurgeCursor } from "./purge-cursor.ts";
import { type Command, packGroveError, packRefusal, type Reply } from "./write-commands.ts";

/** Size of the write-ahead log from which it is brought into the database. */
export const WAL_CHECKPOINT_BYTES = 33_554_432;

/** Commands with their numbers. */
export type NumberedCommands = readonly (readonly [number, Command])[];

/** These free space, or lead up to it, so they may use the ballast. */
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
  // Whoever has a link is shut out also while the disk is full, as whoever has a share is.
  "revokeLink",
  "trash",
  "unlock",
  "unshare",
]);

/** A restore from the trash that makes no folder may too: nothing grows by it (D14). */
function mayUseBallast(command: Command): boolean {
  switch (command.op) {
    case "restore":
      return command.maxInodes === 0;
    case "truncate":
      return (
        command.by === command.owner && !("chunks" in command.content && command.content.chunks.length > 0)
      );
    case "changeProperties":
      return command.edits.every(({ kind }) => kind === "remove");
    default:
      return FREEING.has(command.op);
  }
}

/** Commands whose rows may refer to missing ones; each has a transaction of its own. */
const ARRIVALS: ReadonlySet<Command["op"]> = new Set(["putMoveBuckets", "finishImport", "dropImport"]);

function isArrival([, { op }]: NumberedCommands[number]): boolean {
  return ARRIVALS.has(op);
}

/** A frame of the write-ahead log: a page of 4 KiB and its header. */
const WAL_FRAME_BYTES = 4_120;
/** Share of the ballast that the log may use before it is brought in. */
const BALLAST_SHARE_OF_LOG = 0.25;
/** How long an overdue checkpoint waits for readers. */
const RESTART_WAIT_MS = 100;

/** Owns the only connection that writes. After an error of the store it refuses everything (`failure`). */
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
  /** True from a full disk until the ballast is regained: commands that do not free space must not use it. */
  #isBallastSpent = false;
  #failure: string | undefined;
  readonly #checkpointer: Checkpointer;
  readonly #purges = new PurgeCursor();
  readonly #freed = new Set<string>();
  /** Frames in the log right after an incomplete checkpoint, 0 after a complete one. */
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

  /** Chunks whose files wait for their removal. */
  get garbageCount(): number {
    return this.#ledger.garbageCount;
  }

  /** Owners whose grants may have changed since the last call. */
  takeSharesChanged(): string[] {
    return this.#commands.shareRows.takeChangedOwners();
  }

  /** Owners whose used bytes a purge has reduced since the last call. */
  takeFreed(): string[] {
    const freed = [...this.#freed];
    this.#freed.clear();
    return freed;
  }

  /** True while there are such owners. */
  get hasFreed(): boolean {
    return this.#freed.size > 0;
  }

  /** Runs the commands in one transaction; returns their answers once it is durable. */
  run(commands: NumberedCommands): Reply[] {
    if (this.#failure !== undefined) return refuseAll(commands, storageFailed(this.#failure));
    this.#purges.lookAgain();
    if (this.#isBallastSpent && !this.#regainBallast()) return this.#runOnFullDisk(commands);
    const first = commands.findIndex(isArrival);
    if (first >= 0 && commands.length > 1) return partsAt(first, commands).flatMap((part) => this.run(part));
    try {
      return first >= 0 ? this.#arrival(commands) : this.#transaction(commands);
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

  /**
   * Removes a bounded part of the detached inodes; false when nothing is left or it is impossible now. What cannot be
   * removed is passed over until all the rest is gone, and tried again then.
   */
  purgeSlice(): boolean {
    if (this.#failure !== undefined) return false;
    const { contents } = this.#commands;
    try {
      const next = this.#purges.next((id) => contents.nextDetached(id));
      if (next === undefined) return this.#purges.atEnd();
      this.#begin.run();
      this.#ledger.begin();
      const freed = contents.purgeSlice(next);
      this.#ledger.flush();
      this.#commit.run();
      this.#ledger.committed();
      if (freed !== undefined) this.#freed.add(freed);
      this.#purges.removed();
      return true;
    } catch (error) {
      this.#undo(error);
      if (this.#failure !== undefined || isDatabaseBusy(error)) return false;
      if (!isDatabaseFull(error)) return this.#purges.passOver();
      if (this.#isBallastSpent) return false;
      // The user's removal was acknowledged: its space must come back without further commands.
      this.#giveUpBallast();
      return true;
    }
  }

  /** Brings the write-ahead log into the database once it is long, or at any length when idle. */
  checkpoint(when: "long" | "idle"): void {
    if (this.#failure !== undefined) return;
    try {
      // Most of it runs beside the commits; the rest, written meanwhile, between two of them, so the log
      // restarts.
      const isMostDone = this.#checkpointer.takeDone();
      // It may have reported a failed flush, after which there must be no other.
      if (this.#failure !== undefined || this.#checkpointer.isRunning) return;
      if (isMostDone) return this.#finishCheckpoint("PASSIVE");
      const { log } = this.#walSize.get() as { log: number };
      // The ballast could not hold a log of the usual length: repeated trash and restore must not use it up.
      const isTight = this.#isBallastSpent;
      const logBytes = isTight ? this.#ballast.bytes * BALLAST_SHARE_OF_LOG : WAL_CHECKPOINT_BYTES;
      const threshold = when === "idle" ? 1 : logBytes / WAL_FRAME_BYTES + this.#framesLeft;
      if (log < threshold) return;
      if (when === "idle" || isTight) return this.#finishCheckpoint("PASSIVE");
      // Beyond four times the limit a reader must have stood in the way: then wait for it a little.
      if (log > (4 * WAL_CHECKPOINT_BYTES) / WAL_FRAME_BYTES) this.#finishCheckpoint("RESTART");
      else this.#checkpointer.start();
    } catch (error) {
      if (isBrokenDatabase(error)) this.fail(errorText(error));
    }
  }

  #finishCheckpoint(how: "PASSIVE" | "RESTART"): void {
    // A backup's or the scrub's snapshot may last for minutes; no commit waits for that.
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

  /** Makes the ballast file, unless it exists. */
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
      // No space for it now: what is left is for commands that free some.
      this.#giveUpBallast();
    }
  }

  /** Ends all writing. */
  fail(reason: string): void {
    this.#failure ??= reason;
  }

  /** Closes; brings the log into the database when asked for and possible. */
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

  /** A root's rows arrive in any order, so that they refer to rows that come later. */
  #arrival(commands: NumberedCommands): Reply[] {
    this.#db.exec("PRAGMA foreign_keys = OFF");
    try {
      return this.#transaction(commands);
    } finally {
      // Nothing is changed inside of a transaction, which an error may have left open.
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      this.#db.exec("PRAGMA foreign_keys = ON");
    }
  }

  /** Tries only with room for the attempt: it runs before every transaction while the disk is full. */
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

  /** On a full disk, commands that free space use the ballast; others are refused. */
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

  /** After an error that ended a transaction: returns to the committed state, and stops on a broken store. */
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

/** What comes before an arrival, the arrival, and what comes after; the order stays. */
function partsAt(arrival: number, commands: NumberedCommands): NumberedCommands[] {
  const parts = [
    commands.slice(0, arrival),
    commands.slice(arrival, arrival + 1),
    commands.slice(arrival + 1),
  ];
  return parts.filter((part) => part.length > 0);
}

function refuseAll(commands: NumberedCommands, error: GroveError): Reply[] {
  return commands.map(([number]) => [number, packGroveError(error)] as const);
}

function internal(error: unknown): GroveError {
  return new GroveError("INTERNAL", `a change failed: ${errorText(error)}`);
}
