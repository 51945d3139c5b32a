// Dispatches each command to its part of the writer, within the transaction that the writer has begun.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type Counted, StaleAccessError } from "#storage/contract/inode.ts";
import type { ChangeFields } from "#storage/metadata/change-messages.ts";
import { ContentRows } from "#storage/metadata/content-rows.ts";
import { DamageRows } from "#storage/metadata/damage-rows.ts";
import { orOvertaken } from "#storage/metadata/followed-path.ts";
import { InodeRows } from "#storage/metadata/inode-rows.ts";
import { LinkRows } from "#storage/metadata/link-rows.ts";
import { LockRows, mayBeLocked } from "#storage/metadata/lock-rows.ts";
import { RootPlaces } from "#storage/metadata/root-places.ts";
import { ShareRows } from "#storage/metadata/share-rows.ts";
import { TrashBin } from "#storage/metadata/trash-bin.ts";
import { TreeHeights } from "#storage/metadata/tree-heights.ts";
import type { Ledger } from "#storage/metadata/unit-of-work.ts";
import { ContentCommands } from "./content-commands.ts";
import { CopyCommands } from "./copy-commands.ts";
import { LinkCommands } from "./link-commands.ts";
import type { LinkCommand } from "./link-messages.ts";
import { LockCommands } from "./lock-commands.ts";
import { MoveCommands } from "./move-commands.ts";
import { NamespaceCommands } from "./namespace-commands.ts";
import { RenameUserCommands } from "./rename-user-commands.ts";
import { ShareCommands } from "./share-commands.ts";
import { TrashCommands } from "./trash-commands.ts";
import { UploadCommands } from "./upload-commands.ts";
import type { Command, CommandReply, CreateRootCommand } from "./write-commands.ts";

type SilentOp =
  | "boundUploadTimes"
  | "closeChunkDirectory"
  | LinkCommand["op"]
  | "dropGarbage"
  | "dropStaged"
  | "openChunkDirectory"
  | "savePass"
  | "receiveBuckets"
  | "thawRoot"
  | "departRoot"
  | "takeRootBack"
  | "finishImport"
  | "keepMoveHead";

/** Runs single commands. */
export class CommandTable {
  /** For the purge, which runs between commands. */
  readonly contents: ContentCommands;
  /** For the owners whose shares have changed. */
  readonly shareRows: ShareRows;
  readonly #ledger: Ledger;
  readonly #inodes: InodeRows;
  readonly #bin: TrashBin;
  readonly #content: ContentRows;
  readonly #namespace: NamespaceCommands;
  readonly #trash: TrashCommands;
  readonly #shares: ShareCommands;
  readonly #locks: LockCommands;
  readonly #links: LinkCommands;
  readonly #damage: DamageRows;
  readonly #uploads: UploadCommands;
  readonly #copies: CopyCommands;
  readonly #makeRenames: () => RenameUserCommands;
  readonly #makeMoves: () => MoveCommands;
  #madeMoves: MoveCommands | undefined;
  readonly #makePlaces: () => RootPlaces;
  readonly #openDirectory: StatementSync;
  readonly #closeDirectory: StatementSync;
  readonly #savePass: StatementSync;

  constructor(db: DatabaseSync, ledger: Ledger) {
    this.#ledger = ledger;
    this.#content = new ContentRows(db, ledger);
    const inodes = new InodeRows(db, ledger, this.#content);
    this.#inodes = inodes;
    this.shareRows = new ShareRows(db, ledger, inodes);
    const heights = new TreeHeights(db, ledger);
    const locks = new LockRows(db, ledger);
    this.#shares = new ShareCommands(ledger, inodes, this.shareRows);
    this.#locks = new LockCommands(ledger, inodes, locks);
    const links = new LinkRows(db, locks);
    this.#links = new LinkCommands(ledger, inodes, links);
    const tables = { ledger, inodes, content: this.#content, shares: this.shareRows, heights, locks, links };
    const bin = new TrashBin(db, tables);
    this.#bin = bin;
    this.#uploads = new UploadCommands(db, tables);
    this.#namespace = new NamespaceCommands(db, { ...tables, bin });
    this.#damage = new DamageRows(db, inodes);
    const rows = {
      ...tables,
      bin,
      namespace: this.#namespace,
      damage: this.#damage,
      uploads: this.#uploads,
    };
    this.contents = new ContentCommands(db, rows);
    this.#trash = new TrashCommands(rows);
    this.#copies = new CopyCommands(db, rows);
    this.#makeRenames = () => new RenameUserCommands(db, tables);
    this.#makeMoves = () => new MoveCommands(db, tables);
    this.#makePlaces = () => new RootPlaces(db);
    this.#openDirectory = db.prepare(
      "INSERT INTO open_directory (name) VALUES (?) ON CONFLICT (name) DO NOTHING",
    );
    this.#savePass = db.prepare(
      "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    );
    this.#closeDirectory = db.prepare("DELETE FROM open_directory WHERE name = ?");
  }

  /**
   * Runs a command and returns the answer that ReplyOf gives, counted. Throws its refusal, and
   * StaleAccessError when it makes more inodes than claimed.
   */
  apply(command: Command): Counted<CommandReply> {
    const before = this.#inodesOf(command);
    this.#requireLockVersion(command);
    this.#bin.takeKept();
    this.#inodes.properties.takeDropped();
    const reply = this.#applyAt(command);
    if (typeof reply !== "object" || !("usedDeltaBytes" in reply)) return reply;
    const inodeDelta = this.#inodesOf(command) - before;
    const kept = this.#bin.takeKept();
    const usedDeltaBytes = reply.usedDeltaBytes - this.#inodes.properties.takeDropped();
    const { maxInodes = inodeDelta, maxAddedBytes = usedDeltaBytes } = command as Partial<ChangeFields>;
    if (inodeDelta > maxInodes || usedDeltaBytes > maxAddedBytes) {
      throw new StaleAccessError("more is to be made than was claimed; check again and repeat");
    }
    const counted = { ...reply, usedDeltaBytes, inodeDelta };
    return kept === undefined ? counted : { ...counted, kept };
  }

  /** A change whose check did not see a lock that was taken since, on its way, is checked again. */
  #requireLockVersion(command: Command): void {
    if (!("lockVersion" in command) || command.lockVersion === undefined) return;
    const root = this.#ledger.findRoot(command.owner);
    if (root?.lockVersion === command.lockVersion) return;
    const paths = "targetAt" in command ? [command.at, command.targetAt] : [command.at];
    const known = paths.filter((path) => path !== undefined);
    const isOther = root === undefined || known.length < paths.length;
    if (isOther || mayBeLocked(root, command.lockVersion, known)) {
      throw new StaleAccessError("something was locked meanwhile; check again and repeat");
    }
  }

  /** Few nodes move roots, and those of a shared engine never. */
  get #moves(): MoveCommands {
    this.#madeMoves ??= this.#makeMoves();
    return this.#madeMoves;
  }

  /** Only a root that is not there is looked up among those that have left: a shared engine has no such rows. */
  #createRoot(command: CreateRootCommand): CommandReply {
    if (this.#ledger.findRoot(command.owner) === undefined)
      this.#makePlaces().requireNotDeparted(command.rootId);
    return this.#namespace.createRoot(command);
  }

  #inodesOf(command: Command): number {
    const root = "owner" in command ? this.#ledger.findRoot(command.owner) : undefined;
    return root === undefined ? 0 : root.liveInodes + root.trashInodes;
  }

  #applyAt(command: Command): CommandReply {
    if (command.op === "renameCreator") return this.#makeRenames().renameCreator(command);
    if (command.op === "renameUser") return this.#makeRenames().rename(command);
    try {
      return command.op === "stageKept" ? this.contents.stageKept(command) : this.#apply(command);
    } catch (error) {
      throw "at" in command ? orOvertaken(error, command.at) : error;
    }
  }

  #apply(command: Exclude<Command, { op: "renameCreator" | "renameUser" | "stageKept" }>): CommandReply {
    switch (command.op) {
      case "createFile":
        return this.#namespace.createFile(command);
      case "createDirectory":
        return this.#namespace.createDirectory(command);
      case "createRoot":
        return this.#createRoot(command);
      case "rename":
        return this.#namespace.rename(command);
      case "remove":
        return this.#namespace.remove(command);
      case "share":
        return this.#shares.share(command);
      case "unshare":
        return this.#shares.unshare(command);
      case "lock":
        return this.#locks.lock(command);
      case "changeProperties":
        return this.#locks.changeProperties(command);
      case "refreshLock":
        return this.#locks.refresh(command);
      case "unlock":
        return this.#locks.unlock(command);
      case "trash":
        return this.#trash.trash(command);
      case "restore":
        return this.#trash.restore(command);
      case "purgeTrash":
        return this.#trash.purgeTrash(command);
      case "commitUpload":
        return this.contents.commitUpload(command);
      case "writeInline":
        return this.contents.writeInline(command);
      case "truncate":
        return this.contents.truncate(command);
      case "writeChunks":
        return this.contents.writeChunks(command);
      case "stageChunks":
        return this.contents.stageChunks(command);
      case "markDamaged":
        return this.#damage.mark(command);
      case "createUpload":
        return this.#uploads.create(command);
      case "beginExport":
      case "markExport":
      case "endExport":
      case "freezeRoot":
      case "beginImport":
      case "putMoveBuckets":
      case "dropImport":
        return this.#moves.answered(command);
      case "beginCopy":
        return this.#copies.begin(command);
      case "copySlice":
        return this.#copies.slice(command);
      case "finishCopy":
        return this.#copies.finish(command);
      case "dropCopy":
        return this.#copies.drop(command);
      case "stageUpload":
        return this.#uploads.stage(command);
      case "dropUpload":
        return this.#uploads.drop(command);
      default:
        this.#applySilent(command);
        return undefined;
    }
  }

  /** The commands without an answer. */
  #applySilent(command: Extract<Command, { op: SilentOp }>): void {
    switch (command.op) {
      case "dropStaged":
        this.contents.dropStaged(command.contentId);
        break;
      case "receiveBuckets":
        this.#moves.receive(command);
        break;
      case "thawRoot":
        this.#moves.thaw(command);
        break;
      case "departRoot":
        this.#moves.depart(command);
        break;
      case "takeRootBack":
        this.#moves.takeBack(command);
        break;
      case "keepMoveHead":
        this.#moves.keepHead(command);
        break;
      case "finishImport":
        this.#moves.finishImport(command);
        break;
      case "dropGarbage":
        this.#content.dropGarbage(command.chunkIds);
        break;
      case "boundUploadTimes":
        this.#uploads.boundTimes(command);
        break;
      case "openChunkDirectory":
        this.#openDirectory.run(command.directory);
        break;
      case "createLink":
      case "revokeLink":
      case "countDownload":
      case "claimDrop":
      case "returnDrop":
        this.#links.run(command);
        break;
      case "savePass":
        this.#savePass.run(command.name, command.record);
        break;
      case "closeChunkDirectory":
        this.#closeDirectory.run(command.directory);
        break;
    }
  }
}
