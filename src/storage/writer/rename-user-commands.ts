// Puts a person's new username in place of the old one, in everything that rows of a data directory say of them.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { GroveError } from "#base/errors.ts";
import { RENAMED_UP_TO } from "#storage/metadata/schema.ts";
import type { PlacedGrant, ShareRows } from "#storage/metadata/share-rows.ts";
import type { Ledger, RootState } from "#storage/metadata/unit-of-work.ts";
import type { RenameCreatorCommand, RenameUserCommand } from "./write-commands.ts";

/** Inodes whose makers one command looks at, so that others wait little. */
const INODES_AT_ONCE = 65_536;

/** Columns with a username and no other meaning. */
const NAMES = [
  ["share_grant", "granted_by"],
  ["trash", "trashed_by"],
  ["upload", "username"],
  ["root_place", "owner"],
] as const;

interface GrantRow extends PlacedGrant {
  readonly owner: string;
}

/** Both commands may be repeated. */
export class RenameUserCommands {
  readonly #db: DatabaseSync;
  readonly #ledger: Ledger;
  readonly #shares: ShareRows;
  readonly #grants: StatementSync;
  readonly #grantsInTrash: StatementSync;

  constructor(db: DatabaseSync, { ledger, shares }: { ledger: Ledger; shares: ShareRows }) {
    this.#db = db;
    this.#ledger = ledger;
    this.#shares = shares;
    this.#grants = db.prepare(
      `SELECT inode_id AS inodeId, username, granted_by AS grantedBy, granted_at_ms AS grantedAtMs, path, excluded, owner
       FROM share_grant WHERE username = ?`,
    );
    this.#grantsInTrash = db.prepare("UPDATE OR IGNORE trash_grant SET username = ? WHERE username = ?");
  }

  /**
   * Renames in one transaction, and answers how many rows had the old name; nothing for a version that was carried
   * out before. Throws PATH_EXISTS when both names have a root here, BAD_ARGUMENT while the root is under a move.
   */
  rename({ from, to, version }: RenameUserCommand): number {
    if (this.#carriedOut() >= version) return 0;
    let rows = this.#renameGrants(from, to) + this.#renameRoot(from, to);
    for (const [table, column] of NAMES)
      rows += this.#run(`UPDATE ${table} SET ${column} = ? WHERE ${column} = ?`, to, from);
    rows += Number(this.#grantsInTrash.run(to, from).changes);
    rows += this.#run("DELETE FROM trash_grant WHERE username = ?", from);
    rows += this.#renameLocks(from, to);
    this.#run(
      "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
      RENAMED_UP_TO,
      String(version),
    );
    return rows;
  }

  /** Renames the maker of a part of the inodes; answers where the next part begins, 0 after the last. */
  renameCreator({ from, to, version, after }: RenameCreatorCommand): number {
    if (this.#carriedOut() >= version) return 0;
    const end = this.#db
      .prepare("SELECT id FROM inode WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?")
      .get(after, INODES_AT_ONCE - 1) as { id: number } | undefined;
    const upTo = end?.id ?? Number.MAX_SAFE_INTEGER;
    this.#db
      .prepare("UPDATE inode SET created_by = ? WHERE id > ? AND id <= ? AND created_by = ?")
      .run(to, after, upTo, from);
    return end?.id ?? 0;
  }

  #carriedOut(): number {
    const row = this.#db.prepare("SELECT value FROM meta WHERE key = ?").get(RENAMED_UP_TO) as
      | { value: string }
      | undefined;
    return Number(row?.value ?? 0);
  }

  /** A grant to the new name at the same place stays where it is the stronger one. */
  #renameGrants(from: string, to: string): number {
    const present = (this.#grants.all(from) as unknown as GrantRow[]).filter(({ owner }) => owner !== from);
    for (const { owner, ...grant } of present) {
      const root = this.#ledger.root(owner);
      const other = this.#shares.at(grant.inodeId, to);
      const isGrant = grant.excluded === 0 || other === "grant";
      const gone = other === undefined ? [grant] : [grant, { ...grant, username: to }];
      this.#shares.take(root, gone);
      // An owner shares nothing with themselves.
      if (owner !== to) this.#shares.add(root, { ...grant, username: to, excluded: isGrant ? 0 : 1 });
    }
    return present.length;
  }

  #renameRoot(from: string, to: string): number {
    const root = this.#ledger.findRoot(from);
    if (root === undefined) return 0;
    if (this.#ledger.findRoot(to) !== undefined)
      throw new GroveError("PATH_EXISTS", `both ${from} and ${to} have a root on this node`);
    if (this.#db.prepare("SELECT 1 FROM root_move WHERE number = ?").get(root.number) !== undefined)
      throw new GroveError("BAD_ARGUMENT", `the root of ${from} is under a move; end that first`);
    this.#ledger.root(from);
    const own = this.#shares.below(root, "/").filter(({ username }) => username === to);
    if (own.length > 0) this.#shares.take(root, own);
    this.#shares.changeOwner(root, to);
    this.#ledger.forgetRoot(from);
    return this.#run("UPDATE root SET owner = ? WHERE number = ?", to, root.number);
  }

  /** Whoever has looked at a root's locks looks again. */
  #renameLocks(from: string, to: string): number {
    const numbers = this.#db
      .prepare("SELECT DISTINCT root_number AS number FROM lock WHERE username = ?")
      .all(from) as { number: number }[];
    for (const { number } of numbers) {
      const root = this.#rootWithNumber(number);
      if (root === undefined) continue;
      this.#ledger.touchRoot(root);
      root.lockVersion++;
    }
    return this.#run("UPDATE lock SET username = ? WHERE username = ?", to, from);
  }

  #rootWithNumber(number: number): RootState | undefined {
    const row = this.#db.prepare("SELECT owner FROM root WHERE number = ?").get(number) as
      | { owner: string }
      | undefined;
    return row === undefined ? undefined : this.#ledger.findRoot(row.owner);
  }

  #run(sql: string, ...values: (string | number)[]): number {
    return Number(this.#db.prepare(sql).run(...values).changes);
  }
}
