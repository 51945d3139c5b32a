// The metrics snapshot: the last hour of every node, saved once a minute (spec 2.10, 6, 8).
import { join } from "node:path";
import { HISTORY_SNAPSHOTS_PER_NODE } from "#base/limits.ts";
import { RING_COLUMNS } from "./columns.ts";
import { SeriesFile, type SeriesFileOptions } from "./series-file.ts";

/** The file's name in the console's data folder. */
export const SNAPSHOT_FILE = "admin_metrics_snapshot.json";
/** Up to this many nodes the metrics snapshot is always written as a whole (T18). */
const WHOLE_NODES_MAX = 10;
/** The same in bytes: one such file a minute is 0.6 GB a day. Larger ones get a journal (T18). */
const WHOLE_MAX_BYTES = 400_000;
/** Interval at which the journal of the metrics snapshot is merged into a whole file (T18). */
const COMPACTION_INTERVAL_MS = 3_600_000;

/** The file, for the rings of all nodes. */
export function snapshotFile({
  folder,
  ...options
}: Pick<SeriesFileOptions, "clock" | "thread" | "series"> & { readonly folder: string }): SeriesFile {
  return new SeriesFile({
    ...options,
    path: join(folder, SNAPSHOT_FILE),
    form: { list: "nodes", columns: RING_COLUMNS, rowsMax: HISTORY_SNAPSHOTS_PER_NODE },
    compactionIntervalMs: COMPACTION_INTERVAL_MS,
    wholeUpTo: { series: WHOLE_NODES_MAX, bytes: WHOLE_MAX_BYTES },
  });
}
