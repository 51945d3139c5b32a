// The statement that reads the rows behind facts: in one version, and only of the tables that they are about.
import { rootNumberOf } from "#storage/contract/inode.ts";
import { type Fact, LIST_PART, LIST_START } from "./row-facts.ts";

/** A part of the statement, for facts of some kinds. */
interface Part {
  readonly kinds: readonly Fact["kind"][];
  /** Subqueries by their names. */
  readonly sets: readonly string[];
  /** Queries that answer a table's name and a row of it. */
  readonly answers: readonly string[];
}

/** `:word` stands for a list of what is asked for. Half-keys come in pairs of lists. */
const PARTS: readonly Part[] = [
  {
    kinds: ["root", "number"],
    sets: ["asked AS (SELECT * FROM root WHERE owner = ANY (:owners) OR number = ANY (:number))"],
    answers: [
      "SELECT 'root', row_to_json(asked) FROM asked",
      "SELECT 'share_grant', row_to_json(g) FROM asked JOIN share_grant g ON g.owner = asked.owner",
      "SELECT 'lock', row_to_json(l) FROM asked JOIN lock l ON l.root_number = asked.number",
      "SELECT 'link', row_to_json(l) FROM asked JOIN link l ON l.root_number = asked.number",
      "SELECT 'upload', row_to_json(u) FROM asked JOIN upload u ON u.root_number = asked.number",
      "SELECT 'staging', row_to_json(s) FROM asked JOIN staging s ON s.root_number = asked.number",
      "SELECT 'copying', row_to_json(c) FROM asked JOIN copying c ON (c.inode_id >> 32) = asked.number",
      `SELECT 'purging', row_to_json(p) FROM asked
        JOIN purging p ON (coalesce(p.inode_id, p.content_id) >> 32) = asked.number`,
      "SELECT 'holding', row_to_json(h) FROM asked JOIN holding h ON h.root_number = asked.number",
    ],
  },
  {
    kinds: ["inode"],
    sets: [
      `up AS (
        SELECT i.* FROM inode i WHERE i.id = ANY (:inode)
        UNION SELECT p.* FROM up JOIN inode p ON p.id = up.parent_id
      )`,
    ],
    answers: ["SELECT 'inode', row_to_json(up) FROM up"],
  },
  {
    kinds: ["name"],
    sets: [],
    answers: [
      `SELECT 'inode', row_to_json(i) FROM unnest(:parents::bigint[], :names::text[]) AS q (parent, name)
        JOIN inode i ON i.parent_id = q.parent AND i.name = q.name`,
    ],
  },
  // Behind the rows of a path comes the name at which it ends, where it does.
  {
    kinds: ["path"],
    sets: [
      `paths AS (
        SELECT q.owner, ARRAY(SELECT json_array_elements_text(q.names::json)) AS names
        FROM unnest(:pathOwners::text[], :pathNames::text[]) AS q (owner, names)
      )`,
      `walk AS (
        SELECT i.id, paths.names, 1 AS next FROM paths JOIN root r ON r.owner = paths.owner JOIN inode i ON i.id = r.directory_id
        UNION ALL SELECT i.id, walk.names, walk.next + 1 FROM walk
          JOIN inode i ON i.parent_id = walk.id AND i.name = walk.names[walk.next]
      )`,
    ],
    answers: [
      "SELECT 'inode', row_to_json(i) FROM walk JOIN inode i ON i.id = walk.id",
      `SELECT 'absent', json_build_object('id', walk.id, 'name', walk.names[walk.next]) FROM walk
        WHERE walk.next <= cardinality(walk.names) AND NOT EXISTS (
          SELECT 1 FROM inode i WHERE i.parent_id = walk.id AND i.name = walk.names[walk.next]
        )`,
    ],
  },
  {
    kinds: ["children"],
    sets: [],
    answers: ["SELECT 'inode', row_to_json(i) FROM inode i WHERE i.parent_id = ANY (:children)"],
  },
  {
    kinds: ["heights"],
    sets: [],
    answers: [
      "SELECT 'inode', row_to_json(i) FROM inode i WHERE i.parent_id = ANY (:heights) AND i.height > 0",
    ],
  },
  {
    kinds: ["inline"],
    sets: [],
    answers: [
      "SELECT 'inline_content', row_to_json(c) FROM inline_content c WHERE c.inode_id = ANY (:inline)",
    ],
  },
  {
    kinds: ["properties"],
    sets: [],
    answers: ["SELECT 'property', row_to_json(p) FROM property p WHERE p.inode_id = ANY (:properties)"],
  },
  {
    kinds: ["list", "chunk", "users"],
    sets: [
      `positions AS (
        SELECT f.* FROM file_chunk f WHERE f.content_id = ANY (:list) OR f.chunk_id = ANY (:users)
      )`,
      `chunks AS (
        SELECT c.* FROM chunk c
        WHERE c.id = ANY (:chunk) OR c.id IN (SELECT chunk_id FROM file_chunk WHERE content_id = ANY (:list))
      )`,
    ],
    answers: [
      "SELECT 'file_chunk', row_to_json(positions) FROM positions",
      "SELECT 'chunk', row_to_json(chunks) FROM chunks",
      "SELECT 'garbage', row_to_json(g) FROM chunks JOIN garbage g ON g.chunk_id = chunks.id",
      "SELECT 'damaged_chunk', row_to_json(d) FROM chunks JOIN damaged_chunk d ON d.chunk_id = chunks.id",
      `SELECT 'inode', row_to_json(i) FROM file_chunk f JOIN inode i ON i.content_id = f.content_id
        WHERE f.chunk_id = ANY (:users)`,
    ],
  },
  {
    kinds: ["part"],
    sets: [
      `parts AS (
        SELECT f.* FROM unnest(:partLists::bigint[], :partStarts::bigint[]) AS q (list, start)
          JOIN file_chunk f ON f.content_id = q.list AND f.position >= q.start AND f.position < q.start + ${LIST_PART}
      )`,
      "part_chunks AS (SELECT c.* FROM chunk c WHERE c.id IN (SELECT chunk_id FROM parts))",
    ],
    answers: [
      "SELECT 'file_chunk', row_to_json(parts) FROM parts",
      "SELECT 'chunk', row_to_json(c) FROM part_chunks c",
      "SELECT 'garbage', row_to_json(g) FROM part_chunks c JOIN garbage g ON g.chunk_id = c.id",
      "SELECT 'damaged_chunk', row_to_json(d) FROM part_chunks c JOIN damaged_chunk d ON d.chunk_id = c.id",
    ],
  },
  // Behind the rows of a start comes the position up to which the list is known by them, and their number.
  {
    kinds: ["start"],
    sets: [
      `starts AS (
        SELECT f.* FROM unnest(:startLists::bigint[], :startFroms::bigint[]) AS q (list, start) CROSS JOIN LATERAL (
          SELECT * FROM file_chunk WHERE content_id = q.list AND position >= q.start ORDER BY position LIMIT ${LIST_START}
        ) f
      )`,
      "start_chunks AS (SELECT c.* FROM chunk c WHERE c.id IN (SELECT chunk_id FROM starts))",
    ],
    answers: [
      "SELECT 'file_chunk', row_to_json(starts) FROM starts",
      "SELECT 'chunk', row_to_json(c) FROM start_chunks c",
      "SELECT 'garbage', row_to_json(g) FROM start_chunks c JOIN garbage g ON g.chunk_id = c.id",
      "SELECT 'damaged_chunk', row_to_json(d) FROM start_chunks c JOIN damaged_chunk d ON d.chunk_id = c.id",
      `SELECT 'reach', json_build_object('id', q.list, 'count', count(starts), 'next', max(starts.position) + 1)
        FROM unnest(:startLists::bigint[]) AS q (list) LEFT JOIN starts ON starts.content_id = q.list GROUP BY q.list`,
    ],
  },
  {
    kinds: ["trash", "trashes"],
    sets: [
      `items AS (
        SELECT t.* FROM unnest(:itemRoots::bigint[], :items::text[]) AS q (root, item)
          JOIN trash t ON t.root_number = q.root AND t.id = q.item
        UNION SELECT t.* FROM trash t WHERE t.root_number = ANY (:trashes)
      )`,
    ],
    answers: [
      "SELECT 'trash', row_to_json(items) FROM items",
      "SELECT 'inode', row_to_json(i) FROM items JOIN inode i ON i.id = items.inode_id",
      `SELECT 'trash_grant', row_to_json(g) FROM items
        JOIN trash_grant g ON g.root_number = items.root_number AND g.trash_id = items.id`,
    ],
  },
];

const HOLDINGS = "SELECT 'holding', row_to_json(h) FROM holding h WHERE h.root_number = ANY (:holders)";

/** A statement with the values of its parameters, as pg takes it. */
export interface FetchStatement {
  readonly text: string;
  readonly values: unknown[];
}

/**
 * Rows by their tables' names, and besides them the holders of all roots. Parts that are not asked for are left
 * out: PostgreSQL plans each statement anew, and all of them take it longer than their rows.
 */
export function fetchStatement(facts: readonly Fact[]): FetchStatement {
  const kinds = new Set(facts.map(({ kind }) => kind));
  const parts = PARTS.filter((part) => part.kinds.some((kind) => kinds.has(kind)));
  const answers = [...parts.flatMap((part) => part.answers), HOLDINGS].join(" UNION ALL ");
  const sets = [...parts.flatMap((part) => part.sets), `answers ("table", row) AS (${answers})`];
  const lists = listsOf(facts);
  const values: unknown[] = [];
  const places = new Map<string, number>();
  const text = `WITH RECURSIVE ${sets.join(", ")} SELECT "table", row FROM answers`;
  return {
    text: text.replaceAll(/(?<!:):([a-z]+)/gi, (_, word: string) => {
      const place = places.get(word) ?? values.push(lists[word] ?? []);
      places.set(word, place);
      return `$${place}`;
    }),
    values,
  };
}

/** Lists by the words of the statement. Numbers go by the kind of their facts. */
function listsOf(facts: readonly Fact[]): Readonly<Record<string, readonly unknown[]>> {
  const lists: Record<string, unknown[]> = {};
  const put = (word: string, value: unknown): void => {
    (lists[word] ??= []).push(value);
  };
  for (const fact of facts) {
    if (fact.kind === "root") put("owners", fact.owner);
    else if (fact.kind === "path") {
      put("pathOwners", fact.owner);
      put("pathNames", JSON.stringify(fact.names));
    } else if (fact.kind === "name") {
      put("parents", fact.id);
      put("names", fact.name);
    } else if (fact.kind === "trash") {
      put("itemRoots", fact.id);
      put("items", fact.item);
    } else if (fact.kind === "part") {
      put("partLists", fact.id);
      put("partStarts", fact.from);
    } else if (fact.kind === "start") {
      put("startLists", fact.id);
      put("startFroms", fact.from);
    } else put(fact.kind, fact.id);
    for (const number of rootNumbersOf(fact)) put("holders", number);
  }
  return lists;
}

/** The root of a fact, where its number tells; a chunk's does not. */
function rootNumbersOf(fact: Fact): number[] {
  switch (fact.kind) {
    case "root":
    case "path":
    case "chunk":
    case "users":
      return [];
    case "number":
    case "trash":
    case "trashes":
      return [fact.id];
    default:
      return [rootNumberOf(fact.id)];
  }
}
