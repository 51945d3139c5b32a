// Notes which buckets of a moving root have changed, by triggers that exist only while it moves.
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import { MOVE_BUCKET_BITS } from "./move-rows.ts";

const [ID_BITS, POSITION_BITS, INLINE_BITS] = MOVE_BUCKET_BITS;

/** Tables whose rows belong to a bucket of kind 0, with the column that has the id. */
const BY_ID = [
  ["inode", "id"],
  ["share_grant", "inode_id"],
  ["trash", "inode_id"],
  ["trash_grant", "inode_id"],
  ["lock", "inode_id"],
  ["link", "inode_id"],
  ["property", "inode_id"],
  ["upload", "content_id"],
  ["purging", "inode_id"],
  ["purging", "content_id"],
  ["copying", "inode_id"],
] as const;

const EVENTS = [
  ["INSERT", ["NEW"]],
  ["UPDATE", ["OLD", "NEW"]],
  ["DELETE", ["OLD"]],
] as const;

/** Statements that make the triggers of a root with this number. */
export function journalTriggers(number: number): string[] {
  return triggersOf(number).map(([name, body]) => `CREATE TRIGGER ${name} ${body}`);
}

/** Statements that remove them. */
export function journalRemovals(number: number): string[] {
  return triggersOf(number).map(([name]) => `DROP TRIGGER IF EXISTS ${name}`);
}

function triggersOf(number: number): (readonly [name: string, body: string])[] {
  const base = number * ROOT_STRIDE;
  const isIn = (id: string): string => `${id} BETWEEN ${base} AND ${base + ROOT_STRIDE - 1}`;
  const noted = (values: string): string => `${INTO} ${values} ${AGAIN}`;
  const triggers: (readonly [string, string])[] = [];
  const add = (table: string, column: string, bucket: (id: string, row: string) => string): void => {
    for (const [event, rows] of EVENTS) {
      for (const row of rows) {
        const id = `${row}.${column}`;
        triggers.push([
          `move_${number}_${table}_${column}_${event}_${row}`,
          `AFTER ${event} ON ${table} WHEN ${isIn(id)} BEGIN ${noted(bucket(id, row))}; END`,
        ]);
      }
    }
  };
  for (const [table, column] of BY_ID) {
    add(table, column, (id) => `VALUES (${number}, 0, (${id} - ${base}) >> ${ID_BITS}, 0, 1, 0, '', 0)`);
  }
  add(
    "inline_content",
    "inode_id",
    (id) => `VALUES (${number}, 2, (${id} - ${base}) >> ${INLINE_BITS}, 0, 1, 0, '', 0)`,
  );
  add(
    "file_chunk",
    "content_id",
    (id, row) => `VALUES (${number}, 1, ${id} - ${base}, ${row}.position >> ${POSITION_BITS}, 1, 0, '', 0)`,
  );
  const lists = `SELECT DISTINCT ${number}, 1, content_id - ${base}, position >> ${POSITION_BITS}, 1, 0, '', 0
    FROM file_chunk`;
  // A list counts from the moment when it is an upload's no more.
  triggers.push([
    `move_${number}_staged`,
    `AFTER DELETE ON staging WHEN ${isIn("OLD.content_id")} BEGIN
       ${noted(`${lists} WHERE content_id = OLD.content_id`)}; END`,
  ]);
  for (const [event, row] of [
    ["INSERT", "NEW"],
    ["DELETE", "OLD"],
  ] as const) {
    triggers.push([
      `move_${number}_damage_${event}`,
      `AFTER ${event} ON damaged_chunk BEGIN
         ${noted(`${lists} WHERE chunk_id = ${row}.chunk_id AND ${isIn("content_id")}`)}; END`,
    ]);
  }
  return triggers;
}

const INTO = "INSERT INTO move_bucket (number, kind, a, b, changes, sent, checksum, row_count)";
const AGAIN = "ON CONFLICT (number, kind, a, b) DO UPDATE SET changes = changes + 1";

/** Marks all that a root has in a range of ids: ?1 is its number, ?2 its base, ?3 and ?4 the range within. */
export const MARK_BUCKETS: readonly string[] = [
  `${INTO} WITH RECURSIVE bucket (a) AS (VALUES (?3 >> ${ID_BITS}) UNION ALL
     SELECT a + 1 FROM bucket WHERE a < ?4 >> ${ID_BITS})
   SELECT ?1, 0, a, 0, 1, 0, '', 0 FROM bucket WHERE ?2 >= 0 ${AGAIN}`,
  `${INTO} SELECT DISTINCT ?1, 1, content_id - ?2, position >> ${POSITION_BITS}, 1, 0, '', 0 FROM file_chunk
   WHERE content_id BETWEEN ?2 + ?3 AND ?2 + ?4 ${AGAIN}`,
  `${INTO} SELECT DISTINCT ?1, 2, (inode_id - ?2) >> ${INLINE_BITS}, 0, 1, 0, '', 0 FROM inline_content
   WHERE inode_id BETWEEN ?2 + ?3 AND ?2 + ?4 ${AGAIN}`,
];
