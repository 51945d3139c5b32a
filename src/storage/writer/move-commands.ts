// Commands about roots that move to another node: their state, and the notes of what has changed since.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { ROOT_NUMBER_MAX } from "#base/limits.ts";
import { idBehind } from "#base/ulid.ts";
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { LocalMove, LocalMoveState, MovedRootHead, MoveReceipt } from "#storage/contract/root-move.ts";
import type { ContentRows } from "#storage/metadata/content-rows.ts";
import { journalRemovals, journalTriggers, MARK_BUCKETS } from "#storage/metadata/move-journal.ts";
import type {
  BeginExportCommand,
  BeginImportCommand,
  DepartCommand,
  DropImportCommand,
  EndExportCommand,
  FinishImportCommand,
  FreezeCommand,
  KeepHeadCommand,
  MarkExportCommand,
  MoveCommand,
  MoveReplies,
  PutBucketsCommand,
  ReceiveCommand,
  TakeRootBackCommand,
  ThawCommand,
} from "#storage/metadata/move-messages.ts";
import { MoveReceipts } from "#storage/metadata/move-receipts.ts";
import { MoveSums } from "#storage/metadata/move-sums.ts";
import { ARRIVING, DEPARTED } from "#storage/metadata/moved-roots.ts";
import { RootPlaces } from "#storage/metadata/root-places.ts";
import { FLAG_HAS_GRANTS } from "#storage/metadata/schema.ts";
import type { Ledger } from "#storage/metadata/unit-of-work.ts";
import { MoveArrivals } from "./move-arrivals.ts";

/** Ids that one command marks, so that others wait little. */
const MARKED_AT_ONCE = 65_536;

/** Buckets that one command forgets: others have their turn in between. */
const FORGOTTEN_AT_ONCE = 4_096;

const COLUMNS = "move_id AS moveId, number, owner, state, address, head, ids, marked";

interface MoveRecord extends LocalMove {
  readonly ids: number;
  readonly marked: number;
}

/** See the commands. Each may be repeated. */
export class MoveCommands {
  readonly #db: DatabaseSync;
  readonly #ledger: Ledger;
  readonly #arrivals: MoveArrivals;
  readonly #receipts: MoveReceipts;
  readonly #content: ContentRows;
  readonly #places: RootPlaces;
  readonly #find: StatementSync;
  readonly #insert: StatementSync;
  readonly #setState: StatementSync;
  readonly #setMarked: StatementSync;
  readonly #delete: StatementSync;
  readonly #deleteBuckets: StatementSync;
  readonly #numberTaken: StatementSync;
  readonly #renameRoot: StatementSync;

  constructor(db: DatabaseSync, { ledger, content }: { ledger: Ledger; content: ContentRows }) {
    this.#db = db;
    this.#places = new RootPlaces(db);
    this.#ledger = ledger;
    this.#content = content;
    const sums = new MoveSums(db);
    this.#receipts = new MoveReceipts(db, sums);
    this.#arrivals = new MoveArrivals(db, { ledger, content, sums });
    this.#find = db.prepare(`SELECT ${COLUMNS} FROM root_move WHERE move_id = ?`);
    this.#insert = db.prepare(
      "INSERT INTO root_move (move_id, number, owner, state, address, ids, marked) VALUES (?, ?, ?, ?, '', ?, 0)",
    );
    this.#setState = db.prepare("UPDATE root_move SET state = ?, address = ? WHERE move_id = ?");
    this.#setMarked = db.prepare("UPDATE root_move SET marked = ? WHERE move_id = ?");
    this.#delete = db.prepare("DELETE FROM root_move WHERE move_id = ?");
    this.#deleteBuckets = db.prepare(
      `DELETE FROM move_bucket WHERE number = ?1 AND (kind, a, b) IN
         (SELECT kind, a, b FROM move_bucket WHERE number = ?1 LIMIT ${FORGOTTEN_AT_ONCE})`,
    );
    this.#numberTaken = db.prepare(
      "SELECT 1 FROM root WHERE number = ?1 UNION ALL SELECT 1 FROM root_move WHERE number = ?1",
    );
    this.#renameRoot = db.prepare("UPDATE root SET owner = ? WHERE number = ?");
  }

  /** Runs a command that has an answer. */
  answered(
    command: Extract<MoveCommand, { readonly op: keyof MoveReplies }>,
  ): MoveReplies[keyof MoveReplies] {
    switch (command.op) {
      case "beginExport":
        return this.beginExport(command);
      case "markExport":
        return this.markExport(command);
      case "freezeRoot":
        return this.freeze(command);
      case "endExport":
        return this.endExport(command);
      case "beginImport":
        return this.beginImport(command);
      case "putMoveBuckets":
        return this.putBuckets(command);
      default:
        return this.dropImport(command);
    }
  }

  beginExport({ moveId, owner }: BeginExportCommand): LocalMove {
    const known = this.#known(moveId);
    if (known !== undefined) return toMove(known);
    const root = this.#ledger.root(owner);
    if (this.#numberOfMove(root.number)) {
      throw new GroveError("BAD_ARGUMENT", "this root is under another move; end that first");
    }
    for (const statement of journalTriggers(root.number)) this.#db.exec(statement);
    this.#insert.run(moveId, root.number, owner, "copying", root.nextId);
    return toMove(this.#require(moveId));
  }

  /** False once all that was there at the beginning is marked. */
  markExport({ moveId }: MarkExportCommand): boolean {
    const { number, ids, marked } = this.#require(moveId);
    if (marked >= ids) return false;
    const last = Math.min(ids, marked + MARKED_AT_ONCE) - 1;
    for (const sql of MARK_BUCKETS) this.#db.prepare(sql).run(number, number * ROOT_STRIDE, marked, last);
    this.#setMarked.run(last + 1, moveId);
    return last + 1 < ids;
  }

  receive({ moveId, receipts }: ReceiveCommand): void {
    const { number } = this.#require(moveId);
    this.#receipts.take(number, receipts);
  }

  freeze({ moveId }: FreezeCommand): MovedRootHead {
    const { owner, number, state } = this.#require(moveId, "copying", "frozen");
    const root = this.#ledger.findRoot(owner);
    if (root === undefined) throw noMove();
    if (state === "copying") this.#setState.run("frozen", "", moveId);
    this.#ledger.frozen.set(number, true);
    const { rootId, accessVersion, liveBytes, trashBytes, stagingBytes, fileCount } = root;
    const { liveInodes, trashInodes, nextId, grantCount, lockVersion, lockCount, propertyBytes } = root;
    const bytes = { liveBytes, trashBytes, stagingBytes, propertyBytes };
    const counts = { fileCount, liveInodes, trashInodes, nextId, grantCount, lockCount };
    return { owner, rootId, accessVersion, lockVersion, ...bytes, ...counts };
  }

  thaw({ moveId }: ThawCommand): void {
    const { number } = this.#require(moveId, "copying", "frozen");
    this.#setState.run("copying", "", moveId);
    this.#ledger.frozen.set(number, false);
  }

  depart({ moveId, address, target }: DepartCommand): void {
    const { number, owner, state } = this.#require(moveId, "frozen", "departed");
    this.#setState.run("departed", address, moveId);
    if (state === "departed") return;
    const rootId = this.#ledger.findRoot(owner)?.rootId;
    if (rootId !== undefined) this.#places.left({ rootId, owner, moveId }, { target, address });
    this.#ledger.forgetRoot(owner);
    this.#renameRoot.run(DEPARTED + moveId, number);
    for (const statement of journalRemovals(number)) this.#db.exec(statement);
  }

  /** What was kept is the root again, under a move that nothing is sent for; its end follows. */
  takeBack({ moveId }: TakeRootBackCommand): void {
    const { number, owner, state } = this.#require(moveId, "copying", "frozen", "departed");
    if (state === "copying") return;
    if (state === "frozen") {
      this.#takeFrozenBack({ moveId, owner });
      return;
    }
    if (this.#ledger.findRoot(owner) !== undefined) {
      throw new GroveError("PATH_EXISTS", "this user's root is on this node already");
    }
    const kept = this.#ledger.findRoot(DEPARTED + moveId);
    if (kept === undefined) throw noMove();
    this.#ledger.forgetRoot(kept.owner);
    // Whoever has looked at its access looks again.
    this.#db
      .prepare("UPDATE root SET owner = ?, access_version = access_version + 1 WHERE number = ?")
      .run(owner, number);
    this.#places.came({ rootId: kept.rootId, owner, moveId: idBehind(moveId) });
    this.#setState.run("copying", "", moveId);
    this.#ledger.frozen.set(number, false);
  }

  /** Its source has not heard of the switch: nothing of the root has left its place here. */
  #takeFrozenBack({ moveId, owner }: Pick<MoveRecord, "moveId" | "owner">): void {
    const rootId = this.#ledger.findRoot(owner)?.rootId;
    if (rootId === undefined) throw noMove();
    this.#places.came({ rootId, owner, moveId: idBehind(moveId) });
    this.thaw({ op: "thawRoot", moveId });
  }

  /** False once nothing is left to forget. */
  endExport({ moveId }: EndExportCommand): boolean {
    const move = this.#known(moveId);
    if (move === undefined) return false;
    const { number, state } = this.#require(moveId, "copying", "frozen", "departed");
    if (state === "departed") this.#remove(move);
    for (const statement of journalRemovals(number)) this.#db.exec(statement);
    this.#ledger.frozen.set(number, false);
    if (this.#forgetSlice(number)) return true;
    this.#delete.run(moveId);
    return false;
  }

  beginImport({ moveId, owner, numbers }: BeginImportCommand): LocalMove {
    const known = this.#known(moveId);
    if (known !== undefined) return toMove(known);
    if (this.#ledger.findRoot(owner) !== undefined) {
      throw new GroveError("PATH_EXISTS", "this user's root is on this node already");
    }
    const number = numbers.find((one) => isRootNumber(one) && this.#numberTaken.get(one) === undefined);
    if (number !== undefined && this.#isBeingRemoved(number)) {
      throw new GroveError("OVERLOADED", "what this root has left here before is being removed; try again");
    }
    if (number === undefined) throw new GroveError("BAD_ARGUMENT", "no number is free here for this root");
    this.#insert.run(moveId, number, owner, "arriving", 0);
    return toMove(this.#require(moveId));
  }

  putBuckets({ moveId, buckets }: PutBucketsCommand): readonly MoveReceipt[] {
    const { number } = this.#require(moveId, "arriving");
    return this.#arrivals.put({ number, moveId }, buckets);
  }

  keepHead({ moveId, head }: KeepHeadCommand): void {
    this.#require(moveId, "arriving");
    this.#db.prepare("UPDATE root_move SET head = ? WHERE move_id = ?").run(head, moveId);
  }

  finishImport({ moveId, head }: FinishImportCommand): void {
    const { number, state } = this.#require(moveId, "arriving", "arrived");
    if (state === "arrived") return;
    this.#arrivals.finish(number, ARRIVING + moveId, head);
    this.#setState.run("arrived", "", moveId);
    this.#places.came({ rootId: head.rootId, owner: head.owner, moveId });
  }

  /** False once nothing is left. */
  dropImport({ moveId }: DropImportCommand): boolean {
    const move = this.#known(moveId);
    if (move === undefined) return false;
    const { number, state } = this.#require(moveId, "arriving", "arrived");
    if (state === "arriving" && this.#arrivals.dropSlice(number)) return true;
    if (this.#forgetSlice(number)) return true;
    this.#delete.run(moveId);
    return false;
  }

  /** True while more is left. */
  #forgetSlice(number: number): boolean {
    return this.#deleteBuckets.run(number).changes !== 0;
  }

  /** Hands everything of a departed root to the purge. */
  #remove({ moveId, number }: MoveRecord): void {
    const root = this.#ledger.findRoot(DEPARTED + moveId);
    if (root === undefined) return;
    const { directoryId, liveInodes, trashBytes } = root;
    const within: [number, number] = [number * ROOT_STRIDE, number * ROOT_STRIDE + ROOT_STRIDE - 1];
    const change = (sql: string): void => void this.#db.prepare(sql).run(...within);
    change("INSERT INTO purging (inode_id) SELECT inode_id FROM trash WHERE inode_id BETWEEN ? AND ?");
    change("INSERT INTO purging (content_id) SELECT content_id FROM upload WHERE content_id BETWEEN ? AND ?");
    change("DELETE FROM trash_grant WHERE inode_id BETWEEN ? AND ?");
    change("DELETE FROM trash WHERE inode_id BETWEEN ? AND ?");
    change("DELETE FROM lock WHERE inode_id BETWEEN ? AND ?");
    change("DELETE FROM link WHERE inode_id BETWEEN ? AND ?");
    change("DELETE FROM upload WHERE content_id BETWEEN ? AND ?");
    this.#unmarkShares(within);
    change("DELETE FROM share_grant WHERE inode_id BETWEEN ? AND ?");
    this.#content.purgeLater({ inodeId: directoryId });
    this.#ledger.count({ inodes: -(1 + liveInodes), trashBytes: -trashBytes });
    this.#ledger.forgetRoot(root.owner);
    this.#db.prepare("DELETE FROM root WHERE number = ?").run(number);
  }

  /** Takes the marks of a root's grants from rows and from the states of directories in memory. */
  #unmarkShares(within: readonly [number, number]): void {
    const granted = "SELECT DISTINCT inode_id AS id FROM share_grant WHERE inode_id BETWEEN ? AND ?";
    for (const { id } of this.#db.prepare(granted).all(...within) as { id: number }[]) {
      const directory = this.#ledger.directory(id);
      if (directory === undefined) continue;
      this.#ledger.touch(directory);
      directory.flags &= ~FLAG_HAS_GRANTS;
    }
    this.#db
      .prepare(`UPDATE inode SET flags = flags & ~${FLAG_HAS_GRANTS} WHERE id IN (${granted})`)
      .run(...within);
  }

  /** True while rows of a former root with this number wait for their purge. */
  #isBeingRemoved(number: number): boolean {
    const within: [number, number] = [number * ROOT_STRIDE, number * ROOT_STRIDE + ROOT_STRIDE - 1];
    return LEFT_BEHIND.some((sql) => this.#db.prepare(sql).get(...within) !== undefined);
  }

  #numberOfMove(number: number): boolean {
    return this.#db.prepare("SELECT 1 FROM root_move WHERE number = ?").get(number) !== undefined;
  }

  #known(moveId: string): MoveRecord | undefined {
    return this.#find.get(moveId) as unknown as MoveRecord | undefined;
  }

  #require(moveId: string, ...states: readonly LocalMoveState[]): MoveRecord {
    const move = this.#known(moveId);
    if (move === undefined) throw noMove();
    if (states.length > 0 && !states.includes(move.state)) {
      throw new GroveError("BAD_ARGUMENT", `the move is ${move.state} on this node`);
    }
    return move;
  }
}

/** Rows that a root leaves behind until they are purged. */
const LEFT_BEHIND: readonly string[] = [
  "SELECT 1 FROM inode WHERE id BETWEEN ? AND ? LIMIT 1",
  "SELECT 1 FROM file_chunk WHERE content_id BETWEEN ? AND ? LIMIT 1",
];

function isRootNumber(number: number): boolean {
  return Number.isSafeInteger(number) && number > 0 && number <= ROOT_NUMBER_MAX;
}

function toMove({ moveId, owner, state, number, address, head }: MoveRecord): LocalMove {
  return { moveId, owner, state, number, address, head };
}

function noMove(): GroveError {
  return new GroveError("NO_SUCH_PATH", "this node knows no such move");
}
