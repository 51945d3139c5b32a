// The guard of each statement of the storage commands: what must be known for its answer to be true.
import type { StatementSync } from "node:sqlite";
import { KIND_DIRECTORY } from "#storage/metadata/schema.ts";
import { madeRow } from "./made-rows.ts";
import { type Fact, LIST_PART, type RowFacts, RowsMissing } from "./row-facts.ts";

type Params = readonly unknown[];
type FactOf = (params: Params) => Fact;

/** What guards ask and tell. */
interface Guarding {
  readonly facts: RowFacts;
  /** Prepares a statement without a guard. */
  readonly prepare: (sql: string) => StatementSync;
  /** Says that a row may change in the database which is not here. */
  readonly touch: (table: string, key: number) => void;
  /** Says what a row is that was just inserted under a number. */
  readonly keep: (table: string, key: number, row: object) => void;
}

/** Puts itself before and behind a statement's calls. */
type Guard = (statement: StatementSync, guarding: Guarding) => void;

const id = (
  kind: "inode" | "children" | "heights" | "inline" | "properties" | "list" | "chunk" | "users" | "trashes",
  at = 0,
): FactOf => {
  return (params) => ({ kind, id: Number(params[at]) });
};
const name: FactOf = ([parent, child]) => ({ kind: "name", id: Number(parent), name: String(child) });
const trash: FactOf = ([root, item]) => ({ kind: "trash", id: Number(root), item: String(item) });
const last = (params: Params): Fact => ({ kind: "inode", id: Number(params.at(-1)) });

/** A row that is there answers for itself; only one that is not must be known to be absent. */
const found =
  (factOf: FactOf): Guard =>
  (statement, { facts }) => {
    const get = statement.get.bind(statement) as (...params: Params) => unknown;
    statement.get = ((...params: Params) => {
      const row = get(...params);
      if (row === undefined) facts.require(factOf(params));
      return row;
    }) as StatementSync["get"];
  };

/** All rows of the fact must be there before they are looked through. */
const whole =
  (factOf: FactOf): Guard =>
  (statement, { facts }) => {
    const get = statement.get.bind(statement) as (...params: Params) => unknown;
    const all = statement.all.bind(statement) as (...params: Params) => unknown;
    statement.get = ((...params: Params) => {
      facts.require(factOf(params));
      return get(...params);
    }) as StatementSync["get"];
    statement.all = ((...params: Params) => {
      facts.require(factOf(params));
      return all(...params);
    }) as StatementSync["all"];
  };

/** As many rows as were asked for are enough; fewer must be all that there are. */
const upTo =
  (factOf: FactOf): Guard =>
  (statement, { facts }) => {
    const all = statement.all.bind(statement) as (...params: Params) => unknown[];
    statement.all = ((...params: Params) => {
      const rows = all(...params);
      if (rows.length < Number(params.at(-1))) facts.require(factOf(params));
      return rows;
    }) as StatementSync["all"];
  };

/** A change of a row that is not there must know that it does not exist. */
const changed =
  (factOf: FactOf): Guard =>
  (statement, { facts }) => {
    const run = statement.run.bind(statement) as (...params: Params) => { changes: number | bigint };
    statement.run = ((...params: Params) => {
      const result = run(...params);
      if (result.changes === 0) facts.require(factOf(params));
      return result;
    }) as StatementSync["run"];
  };

/** All rows of the fact must be there before some of them are changed. */
const writes =
  (factOf: FactOf): Guard =>
  (statement, { facts }) => {
    const run = statement.run.bind(statement) as (...params: Params) => unknown;
    statement.run = ((...params: Params) => {
      facts.require(factOf(params));
      return run(...params);
    }) as StatementSync["run"];
  };

/** After a row was made, what it says of other rows. */
const made =
  (tell: (facts: RowFacts, params: Params) => void): Guard =>
  (statement, { facts }) => {
    const run = statement.run.bind(statement) as (...params: Params) => { changes: number | bigint };
    statement.run = ((...params: Params) => {
      const result = run(...params);
      if (result.changes !== 0) tell(facts, params);
      return result;
    }) as StatementSync["run"];
  };

/** Besides: a row that is made is not read back for the commit. The statement's first value is its key. */
const kept =
  (besides: Guard): Guard =>
  (statement, guarding) => {
    besides(statement, guarding);
    const { table, rowOf } = madeRow(statement.sourceSQL, guarding.prepare);
    const run = statement.run.bind(statement) as (...params: Params) => { changes: number | bigint };
    statement.run = ((...params: Params) => {
      const result = run(...params);
      if (result.changes !== 0) guarding.keep(table, Number(params[0]), rowOf(params));
      return result;
    }) as StatementSync["run"];
  };

/** Rows that come with their root, and those of the cache's own. */
const complete: Guard = () => undefined;

const newList = (at: number): Guard =>
  made((facts, params) => facts.add({ kind: "list", id: Number(params[at]) }));

const insertInode = made((facts, [inode, parent, entry, kind]) => {
  if (parent !== null) facts.require(name([parent, entry]));
  if (kind === KIND_DIRECTORY) facts.add({ kind: "children", id: Number(inode) });
});

/** Parts of a chunk list that are fetched one after the other; behind more of them its whole is. */
const PARTS_MAX = 64;

const partAt = (list: unknown, position: number): Fact => ({
  kind: "part",
  id: Number(list),
  from: position - (position % LIST_PART),
});

/** A range of positions needs the parts of its list around it. */
const within =
  (firstOf: (bound: number) => number): Guard =>
  (statement, { facts }) => {
    const all = statement.all.bind(statement) as (...params: Params) => unknown;
    statement.all = ((list: number, bound: number, below: number, ...rest: Params) => {
      const from = firstOf(bound);
      if (below - from > PARTS_MAX * LIST_PART) facts.require({ kind: "list", id: list });
      else
        for (let at = from - (from % LIST_PART); at < below; at += LIST_PART) facts.require(partAt(list, at));
      return all(list, bound, below, ...rest);
    }) as StatementSync["all"];
  };

/** As many positions as were asked for are enough, whichever they are; fewer must be all of the list. */
const fromStart: Guard = (statement, { facts }) => {
  const all = statement.all.bind(statement) as (...params: Params) => unknown[];
  statement.all = ((list: number, limit: number) => {
    const rows = all(list, limit);
    if (rows.length >= limit || facts.knows({ kind: "list", id: list })) return rows;
    throw new RowsMissing({ kind: "start", id: list, from: facts.reachOf(list) });
  }) as StatementSync["all"];
};

/** Bytes that are not there may be too many for this table, or none at all, or not fetched. */
const foundBytes: Guard = (statement, guarding) => {
  const { facts } = guarding;
  found(id("inode"))(statement, guarding);
  const get = statement.get.bind(statement) as (...params: Params) => object | undefined;
  statement.get = ((...params: Params) => {
    const row = get(...params);
    if (row !== undefined && Object.values(row).every((value) => value === null)) {
      facts.require(id("inline")(params));
    }
    return row;
  }) as StatementSync["get"];
};

/** The bytes of a small file may lie in the database unread: whether they do is known there when they go. */
const blindInline: Guard = (statement, { facts, touch }) => {
  const run = statement.run.bind(statement) as (...params: Params) => { changes: number | bigint };
  statement.run = ((...params: Params) => {
    const inode = Number(params[0]);
    if (!facts.isNew(inode)) touch("inline_content", inode);
    return run(...params);
  }) as StatementSync["run"];
};

/** A chunk takes its mark of damage with it, as the foreign key does where rows are not a cache. */
const dropChunk: Guard = (statement, guarding) => {
  changed(id("chunk"))(statement, guarding);
  const undamage = guarding.prepare("DELETE FROM damaged_chunk WHERE chunk_id = ?");
  made((_, [chunk]) => undamage.run(Number(chunk)))(statement, guarding);
};

/** Numbers that no other process gives out begin at the cache's own range. */
const ownRange: Guard = (statement, { prepare }) => {
  const range = prepare("SELECT first AS highest FROM id_range");
  statement.get = () => range.get();
};

/** The same for detached things: SQLite's own numbering would go on behind the highest that was fetched. */
const ownPurging: Guard = (statement, { prepare }) => {
  let last = (prepare("SELECT first FROM id_range").get() as { first: number }).first;
  const insert = prepare("INSERT INTO purging (id, inode_id, content_id) VALUES (?, ?, ?)");
  statement.run = ((inode: number | null, list: number | null) =>
    insert.run(++last, inode, list)) as StatementSync["run"];
};

/** Roots are made by the database, which knows all of them. */
const never: Guard = (statement) => {
  const refuse = (): never => {
    throw new Error("a root of the shared engine is made in the database");
  };
  statement.get = refuse;
  statement.run = refuse;
};

/** What goes over all roots has no place where a process knows only its own. */
const notHere: Guard = (statement) => {
  const refuse = (): never => {
    throw new Error("the shared engine asks for this root by root");
  };
  statement.get = refuse;
  statement.all = refuse;
};

/**
 * The guards by the form of their statement, the first that fits. A statement without one cannot be prepared.
 */
const GUARDS: readonly (readonly [form: RegExp, guard: Guard])[] = [
  [/^SELECT .* FROM root WHERE owner = \?$/, found(([owner]) => ({ kind: "root", owner: String(owner) }))],
  [/^SELECT .* FROM root (?:WHERE owner NOT GLOB 'moved:\*' )?ORDER BY number$/, complete],
  [/^SELECT .* FROM root WHERE number = \?$/, found(([number]) => ({ kind: "number", id: Number(number) }))],
  [
    /^UPDATE root SET .* WHERE number = \?$/,
    changed((params) => ({ kind: "number", id: Number(params.at(-1)) })),
  ],
  // Who holds a root knows its id.
  [/^SELECT 1 FROM root WHERE root_id = \? /, never],
  [
    /^(?:INSERT INTO root |SELECT max\(number\) AS number FROM root|SELECT owner FROM root WHERE root_id)/,
    never,
  ],

  [/^SELECT [^?]* FROM inode WHERE id = \?$/, found(id("inode"))],
  [/^SELECT [^?]* FROM inode WHERE parent_id = \? AND name = \?$/, found(name)],
  [/^SELECT [^?]* FROM inode WHERE parent_id = \? LIMIT \?$/, upTo(id("children"))],
  [
    /^SELECT [^?]* FROM inode WHERE parent_id = \? AND name > \? ORDER BY name LIMIT \?$/,
    whole(id("children")),
  ],
  [
    /^SELECT height FROM inode WHERE parent_id = \? AND height > 0 ORDER BY height DESC LIMIT 1$/,
    whole(id("heights")),
  ],
  [/^SELECT [^?]* FROM inode WHERE parent_id = \? .*ORDER BY [^?]* LIMIT \?$/, whole(id("children"))],
  [/^INSERT INTO inode \(id, parent_id, name, kind, /, kept(insertInode)],
  [/^UPDATE inode SET [^?]* = \?.* WHERE id = \?$/, changed(last)],
  [/^DELETE FROM inode WHERE id = \?$/, changed(id("inode"))],

  [/^INSERT INTO inline_content \(inode_id, data\) VALUES \(\?, \?\) ON CONFLICT/, kept(blindInline)],
  [/^SELECT CAST\(data AS BLOB\) AS data FROM inline_content WHERE inode_id = \?$/, found(id("inline"))],
  [
    /^SELECT content_id, CAST\(data AS BLOB\) FROM inode LEFT JOIN inline_content ON inode_id = id WHERE id = \?$/,
    foundBytes,
  ],
  [/^DELETE FROM inline_content WHERE inode_id = \?$/, blindInline],
  [/^UPDATE inline_content SET inode_id = \? WHERE inode_id = \?$/, changed(id("inline", 1))],

  [/^SELECT [^?]* FROM property WHERE inode_id = \?(?: ORDER BY namespace, name)?$/, whole(id("properties"))],
  [
    /^INSERT INTO property \(inode_id, namespace, name, xml\) VALUES \(\?, \?, \?, \?\) ON CONFLICT/,
    writes(id("properties")),
  ],
  [
    /^INSERT INTO property \(inode_id, namespace, name, xml\) SELECT \?, .* WHERE inode_id = \?$/,
    writes(id("properties", 1)),
  ],
  [
    /^DELETE FROM property WHERE inode_id = \?(?: AND namespace = \? AND name = \?)?$/,
    writes(id("properties")),
  ],

  [/^INSERT INTO (?:chunk|garbage) \(/, complete],
  // Chunks come by name with a moving root only.
  [/^SELECT id, refs FROM chunk WHERE name = \?$/, never],
  [/^UPDATE chunk SET refs = refs \+ 1 WHERE id = \?$/, changed(id("chunk"))],
  [/^UPDATE chunk SET refs = refs - 1 WHERE id = \? RETURNING refs$/, found(id("chunk"))],
  [/^SELECT 1 FROM chunk WHERE id = \? AND refs > 0$/, found(id("chunk"))],
  [/^DELETE FROM garbage WHERE chunk_id = \?$/, changed(id("chunk"))],
  [/^DELETE FROM chunk WHERE id = \? AND refs = 0$/, dropChunk],
  [/^SELECT max\((?:id|sequence)\) AS highest FROM (?:chunk|garbage)$/, ownRange],

  [
    /^INSERT INTO file_chunk /,
    made((facts, [list]) => {
      if (facts.isNew(Number(list))) facts.add({ kind: "list", id: Number(list) });
    }),
  ],
  [
    /^SELECT position, chunk_id AS chunkId FROM file_chunk WHERE content_id = \? AND position = \?$/,
    found(([list, position]) => partAt(list, Number(position))),
  ],
  [
    /^SELECT position, chunk_id FROM file_chunk WHERE content_id = \? AND position >= \? AND position < \? ORDER BY position$/,
    within((from) => from),
  ],
  [
    /^SELECT position, chunk_id AS chunkId FROM file_chunk WHERE content_id = \? AND position > \? AND position < \? ORDER/,
    within((after) => after + 1),
  ],
  [
    /^SELECT position, chunk_id AS chunkId FROM file_chunk WHERE content_id = \? ORDER BY position LIMIT \?$/,
    fromStart,
  ],
  [/^SELECT position, chunk_id AS chunkId FROM file_chunk WHERE content_id = \? /, whole(id("list"))],
  [/^SELECT position, chunk_id FROM file_chunk WHERE content_id = \? ORDER BY position$/, whole(id("list"))],
  [/^SELECT id, name, length, crc32, block_crcs FROM chunk WHERE id = \?$/, found(id("chunk"))],
  [/^SELECT .* FROM garbage JOIN chunk /, notHere],
  [
    /^DELETE FROM file_chunk WHERE content_id = \? AND position = \?$/,
    changed(([list, position]) => partAt(list, Number(position))),
  ],

  [/^INSERT INTO damaged_chunk /, complete],
  [/^SELECT DISTINCT .* FROM file_chunk JOIN inode .* WHERE file_chunk\.chunk_id = \?/, whole(id("users"))],
  [
    /^SELECT 1 FROM file_chunk JOIN damaged_chunk USING \(chunk_id\) WHERE content_id = \? LIMIT 1$/,
    whole(id("list")),
  ],

  [/^SELECT .* FROM trash JOIN inode ON inode\.id = inode_id WHERE root_number = \? /, whole(id("trashes"))],
  [/^SELECT .* JOIN root ON root\.number = root_number WHERE root_number = \? /, whole(id("trashes"))],
  [
    /^SELECT .* JOIN root ON root\.number = root_number AND \S+ NOT GLOB 'moved:\*' WHERE trashed_at_ms < \? /,
    notHere,
  ],
  [/^INSERT INTO trash \(root_number, id, /, made((facts, params) => facts.add(trash(params)))],
  [/^SELECT .* FROM trash WHERE root_number = \? AND id = \?$/, found(trash)],
  [/^DELETE FROM trash WHERE root_number = \? AND id = \?$/, changed(trash)],
  [/^INSERT INTO trash_grant /, complete],
  [/^SELECT .* FROM trash_grant WHERE root_number = \? AND trash_id = \? /, whole(trash)],
  [/^DELETE FROM trash_grant WHERE root_number = \? AND trash_id = \?$/, changed(trash)],

  [/^INSERT INTO staging /, newList(0)],
  [/^INSERT INTO upload /, newList(0)],
  // These come whole with their root, and every command comes with its root.
  [
    /^(?:SELECT [^?]* FROM|DELETE FROM|UPDATE) (?:staging|copying|purging|share_grant|upload|lock|link)\b/,
    complete,
  ],
  [/^INSERT INTO purging \(inode_id, content_id\) VALUES \(\?, \?\)$/, ownPurging],
  [/^INSERT INTO (?:copying|share_grant|lock|link) /, complete],
  // The cache's own: how the moves of held roots stand.
  [/^SELECT number FROM root_move WHERE state = 'frozen'$/, complete],
  [/^(?:BEGIN|COMMIT|PRAGMA data_version)$/, complete],
  // Of this machine alone: counters of the cache, passes, directories of chunk files.
  [/^(?:SELECT name, value FROM|INSERT INTO) (?:counter|meta|open_directory)\b/, complete],
  [/^DELETE FROM open_directory /, complete],
  [/^SELECT count\(\*\) AS count FROM garbage$/, complete],
];

/** Guards a statement. Throws for one of an unknown form: its answer could be that of an empty cache. */
export function guard(sql: string, statement: StatementSync, guarding: Guarding): StatementSync {
  const plain = sql.replaceAll(/\s+/g, " ").trim();
  const fitting = GUARDS.find(([form]) => form.test(plain));
  if (fitting === undefined) throw new Error(`no guard says what this statement needs to know: ${plain}`);
  fitting[1](statement, guarding);
  return statement;
}
