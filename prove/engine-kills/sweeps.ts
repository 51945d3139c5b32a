// The end of a run: what nobody needs goes from the bucket, and nothing else; nothing is left that no row knows.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openBareEngine } from "#prove/bare-engine.ts";
import { GROVE } from "#prove/launcher.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { runProgram } from "#testing/run-grove.ts";
import { until } from "#testing/until.ts";
import type { Site } from "./site.ts";

/** Longer than the window of recovery, which is 7 days. */
const AGED = "interval '8 days'";
const AGED_MS = 8 * 86_400_000;

/** Rows that explain objects which no file has. */
const LEFT = "SELECT (SELECT count(*) FROM purging) + (SELECT count(*) FROM staging)";
/** Roots of processes that have ended. */
const ELSEWHERE = "SELECT count(*) FROM holding JOIN instance ON id = instance WHERE is_ended";

/**
 * With all FileServers stopped: takes all roots once more, which ends every block of names, ages what was
 * dropped by eight days, sweeps, and compares the whole bucket. Returns the differences in words.
 */
export async function sweepAll(site: Site): Promise<string[]> {
  const { places, folder, addresses, campaign } = site;
  await Promise.all(site.posts.map((post) => post.stop()));
  const engine = await openBareEngine({
    directory: join(folder, "sweeper"),
    database: addresses,
    store: storeSettings(places.storeUrl),
  });
  const problems: string[] = [];
  try {
    const count = async (query: string): Promise<number> =>
      Number(await places.sql(`SET search_path TO grove_engine; ${query}`));
    await until(async () => (await count(ELSEWHERE)) === 0, "the roots at the sweeper");
    await until(async () => (await count(LEFT)) === 0, "the end of what was staged and removed");
    await places.sql(
      `SET search_path TO grove_engine; UPDATE holding SET taken_at = taken_at - ${AGED};
       UPDATE chunk_block SET closed_at = closed_at - ${AGED}, since_ms = since_ms - ${AGED_MS};
       UPDATE garbage SET dropped_at = dropped_at - ${AGED}`,
    );
    const swept = await engine.passes.run();
    campaign.count("names swept", swept?.removed ?? 0);
    if (swept === undefined || swept.kept > 0)
      problems.push(`the sweeps kept ${swept?.kept ?? "all"} objects`);
    const left = await count(
      "SELECT (SELECT count(*) FROM chunk_block) + (SELECT count(*) FROM chunk WHERE refs = 0)",
    );
    if (left > 0) problems.push(`${left} rows are left of blocks and chunks that nobody needs`);
  } finally {
    await engine.storage.close();
  }
  return [...problems, ...(await fsck(site))];
}

/** `grove fsck -list`, as operators type it. */
async function fsck({ folder, url, places }: Site): Promise<string[]> {
  const file = join(folder, "engine-url");
  await writeFile(file, `${url}\n`, { mode: 0o600 });
  const words = ["fsck", "-engine_file", file, "-store", places.storeUrl, "-list"];
  const { code, out, err } = await runProgram(GROVE, words);
  return code === 0 ? [] : [`fsck -list ended with ${code}: ${out}${err}`];
}
