// The steps of a data directory's schema, each a version.
import type { DatabaseSync } from "node:sqlite";
import { fillHeights } from "./height-upgrade.ts";

/**
 * Each migrates the schema of the version before to the next, in one transaction. Never edit a released one.
 */
export const MIGRATIONS: readonly (string | ((db: DatabaseSync) => void))[] = [
  `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- One user's root. next_id is the lower half of the next inode's or content list's id, number the upper.
  CREATE TABLE root (
    number INTEGER PRIMARY KEY,
    owner TEXT NOT NULL UNIQUE,
    root_id TEXT NOT NULL UNIQUE,
    directory_id INTEGER NOT NULL UNIQUE,
    access_version INTEGER NOT NULL,
    live_bytes INTEGER NOT NULL,
    trash_bytes INTEGER NOT NULL,
    staging_bytes INTEGER NOT NULL,
    file_count INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    grant_count INTEGER NOT NULL
  ) STRICT;

  -- parent_id is NULL for a root's directory and for what is detached and waits for its removal.
  -- Of a directory size is the sum below it, tree_inodes and tree_files count everything below it.
  -- content_id is the chunk list of a file above 64 KiB; created_by is NULL when it was the owner.
  CREATE TABLE inode (
    id INTEGER PRIMARY KEY,
    parent_id INTEGER REFERENCES inode(id),
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    size INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    version INTEGER NOT NULL,
    mtime_ms INTEGER NOT NULL,
    ctime_ms INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    content_id INTEGER,
    created_by TEXT,
    child_count INTEGER NOT NULL,
    tree_inodes INTEGER NOT NULL,
    tree_files INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX inode_by_name ON inode (parent_id, name);

  CREATE TABLE inline_content (
    inode_id INTEGER PRIMARY KEY REFERENCES inode(id),
    data BLOB NOT NULL
  ) STRICT;

  -- One immutable file below chunks/. block_crcs holds one little-endian CRC-32 per block. refs counts file_chunk rows.
  CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    length INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    block_crcs BLOB NOT NULL,
    refs INTEGER NOT NULL
  ) STRICT;
  -- A position without a row is a hole and reads as zeros, and so does what a chunk is short of its span.
  CREATE TABLE file_chunk (
    content_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    chunk_id INTEGER NOT NULL REFERENCES chunk(id),
    PRIMARY KEY (content_id, position)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX file_chunk_by_chunk ON file_chunk (chunk_id);

  -- Chunk lists of uploads that are not committed yet; start-up purges them.
  CREATE TABLE staging (content_id INTEGER PRIMARY KEY, root_number INTEGER NOT NULL REFERENCES root(number)) STRICT;
  -- Detached trees and replaced chunk lists, removed in slices.
  CREATE TABLE purging (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    inode_id INTEGER REFERENCES inode(id),
    content_id INTEGER,
    CHECK ((inode_id IS NULL) <> (content_id IS NULL))
  ) STRICT;
  CREATE INDEX purging_by_inode ON purging (inode_id);
  -- Chunks that nothing refers to: first the file is unlinked, then both rows go.
  CREATE TABLE garbage (sequence INTEGER PRIMARY KEY, chunk_id INTEGER NOT NULL UNIQUE REFERENCES chunk(id)) STRICT;
  -- Directories below chunks/ that may hold files without a row after a crash.
  CREATE TABLE open_directory (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

  CREATE TABLE share_grant (
    inode_id INTEGER NOT NULL REFERENCES inode(id),
    username TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    granted_at_ms INTEGER NOT NULL,
    PRIMARY KEY (inode_id, username)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- One row is one item of an owner's trash: a file, or a folder with all that is in it. Its inode has no parent; sizes and counts are
  -- the inode's own. The id begins with the time. trashed_by is NULL when it was the owner.
  CREATE TABLE trash (
    root_number INTEGER NOT NULL REFERENCES root(number),
    id TEXT NOT NULL,
    inode_id INTEGER NOT NULL UNIQUE REFERENCES inode(id),
    original_path TEXT NOT NULL,
    trashed_at_ms INTEGER NOT NULL,
    trashed_by TEXT,
    PRIMARY KEY (root_number, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX trash_by_time ON trash (trashed_at_ms);
  CREATE INDEX trash_by_path ON trash (root_number, original_path);
  -- Shares that an item had when it was trashed: they count no more, and are told when it is restored.
  CREATE TABLE trash_grant (
    root_number INTEGER NOT NULL,
    trash_id TEXT NOT NULL,
    inode_id INTEGER NOT NULL REFERENCES inode(id),
    username TEXT NOT NULL,
    PRIMARY KEY (root_number, trash_id, inode_id, username),
    FOREIGN KEY (root_number, trash_id) REFERENCES trash(root_number, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX trash_grant_by_inode ON trash_grant (inode_id);
  `,
  `
  -- A grant knows the path at which it hangs, so that what a user may reach is found without a look at what others have.
  ALTER TABLE share_grant ADD COLUMN owner TEXT NOT NULL DEFAULT '';
  ALTER TABLE share_grant ADD COLUMN path TEXT NOT NULL DEFAULT '';
  CREATE INDEX share_grant_by_user ON share_grant (username, owner, path);
  CREATE INDEX share_grant_by_path ON share_grant (owner, path);
  `,
  `
  -- Chunks whose bytes were found wrong, short or missing; the files that use them have the flag of damage.
  CREATE TABLE damaged_chunk (
    chunk_id INTEGER PRIMARY KEY REFERENCES chunk(id) ON DELETE CASCADE,
    found_at_ms INTEGER NOT NULL,
    problem TEXT NOT NULL
  ) STRICT;
  CREATE INDEX inode_by_content ON inode (content_id) WHERE content_id IS NOT NULL;
  CREATE INDEX damaged_inode ON inode (id) WHERE (flags & 1) <> 0;
  `,
  `
  -- Resumable uploads; a start keeps them. content_id is the list of their chunks, crc32 that of the staged_bytes in it.
  CREATE TABLE upload (
    content_id INTEGER PRIMARY KEY,
    upload_id TEXT NOT NULL UNIQUE,
    root_number INTEGER NOT NULL REFERENCES root(number),
    username TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    replaces INTEGER NOT NULL,
    if_match TEXT,
    mtime_ms INTEGER NOT NULL,
    staged_bytes INTEGER NOT NULL,
    crc32 INTEGER NOT NULL,
    touched_at_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX upload_by_user ON upload (username);
  CREATE INDEX upload_by_touch ON upload (touched_at_ms);
  `,
  `
  -- Copied directories that are not in sight yet; start-up purges them.
  CREATE TABLE copying (inode_id INTEGER PRIMARY KEY REFERENCES inode(id)) STRICT;
  `,
  `
  -- Where a former share hung, so that a page of the trash reads no tree.
  ALTER TABLE trash_grant ADD COLUMN path TEXT NOT NULL DEFAULT '';
  `,
  (db) => {
    // Levels below a directory, 0 for an empty one: a move knows from them how deep its tree would lie.
    db.exec("ALTER TABLE inode ADD COLUMN height INTEGER NOT NULL DEFAULT 0");
    fillHeights(db);
    db.exec("CREATE INDEX inode_by_height ON inode (parent_id, height) WHERE height > 0");
  },
  `
  -- 1 for an exclusion: what a share above would give ends here, for one user. In the trash it waits for the restore.
  ALTER TABLE share_grant ADD COLUMN excluded INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE trash_grant ADD COLUMN excluded INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- Files and directories below a root's own directory, and in its trash.
  ALTER TABLE root ADD COLUMN live_inodes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE root ADD COLUMN trash_inodes INTEGER NOT NULL DEFAULT 0;
  UPDATE root SET
    live_inodes = coalesce((SELECT tree_inodes FROM inode WHERE id = directory_id), 0),
    trash_inodes = (SELECT coalesce(sum(1 + tree_inodes), 0) FROM trash JOIN inode ON inode.id = trash.inode_id
      WHERE root_number = root.number);
  `,
  `
  -- A root that moves to another node or comes from one. number is the one that it has here.
  CREATE TABLE root_move (
    move_id TEXT PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    address TEXT NOT NULL,
    -- What the target has heard of the frozen root, as JSON.
    head TEXT NOT NULL DEFAULT '',
    -- Ids within the root that were there when it began, and those of them whose buckets are marked.
    ids INTEGER NOT NULL,
    marked INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  -- Buckets of moving roots: one has to be sent while it has changed more often than when it was sent last.
  CREATE TABLE move_bucket (
    number INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    row_count INTEGER NOT NULL,
    PRIMARY KEY (number, kind, a, b)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX move_bucket_changed ON move_bucket (number, kind, a, b) WHERE changes > sent;
  CREATE INDEX purging_by_content ON purging (content_id) WHERE content_id IS NOT NULL;
  `,
  `
  -- Locks that people take while they edit. lock_version grows with each lock that is taken, lock_count counts a root's rows.
  CREATE TABLE lock (
    token TEXT PRIMARY KEY,
    root_number INTEGER NOT NULL REFERENCES root(number),
    inode_id INTEGER NOT NULL,
    username TEXT NOT NULL,
    credential TEXT NOT NULL,
    is_exclusive INTEGER NOT NULL,
    is_deep INTEGER NOT NULL,
    note TEXT NOT NULL,
    expires_at_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX lock_by_root ON lock (root_number, inode_id);
  ALTER TABLE root ADD COLUMN lock_version INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE root ADD COLUMN lock_count INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- What WebDAV programs keep with an inode. property_bytes counts the bytes of a root's rows, until those of removed inodes are purged.
  CREATE TABLE property (
    inode_id INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    xml TEXT NOT NULL,
    PRIMARY KEY (inode_id, namespace, name)
  ) STRICT, WITHOUT ROWID;
  ALTER TABLE root ADD COLUMN property_bytes INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- Links for people without an account. token_hash is SHA-256 in hex, password an Argon2id text, pass_key signs what shows that
  -- a visitor knew it. A limit of 0 is none. recent has the last downloads of visitors, as JSON.
  CREATE TABLE link (
    id TEXT PRIMARY KEY,
    root_number INTEGER NOT NULL REFERENCES root(number),
    inode_id INTEGER NOT NULL,
    token_hash TEXT NOT NULL,
    kind TEXT NOT NULL,
    password TEXT NOT NULL,
    pass_key TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    ends_ms INTEGER NOT NULL,
    max_downloads INTEGER NOT NULL, max_bytes INTEGER NOT NULL, max_files INTEGER NOT NULL,
    downloads INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0, files INTEGER NOT NULL DEFAULT 0,
    recent TEXT NOT NULL DEFAULT '[]'
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX link_by_root ON link (root_number, inode_id);
  `,
  `
  -- Where a move has brought a root last, one row for each root that ever moved: to another node, whose id is target, or here.
  -- The ids of later moves are greater. No root is made in the place of one that has left.
  CREATE TABLE root_place (
    root_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    move_id TEXT NOT NULL,
    is_here INTEGER NOT NULL,
    target TEXT NOT NULL,
    address TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX root_place_departed ON root_place (move_id) WHERE is_here = 0;
  `,
];
