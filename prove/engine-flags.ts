// Lets rigs attack a FileServer of the shared engine: GROVE_RIG_ENGINE=1 gives it a database and a store.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startStore, withoutStore } from "#testing/object-stores.ts";
import { startPostgres, withoutPostgres } from "#testing/postgres-server.ts";
import type { Campaign } from "./campaign.ts";

/** What the machine lacks for a shared engine. */
export function lacksEngine(): string | undefined {
  const lacking = withoutPostgres() || withoutStore("versitygw");
  return lacking === false ? undefined : lacking;
}

/** The flags of a FileServer on places of its own, which end with the campaign; none without the variable. */
export async function engineFlags(campaign: Campaign): Promise<readonly string[]> {
  if (process.env["GROVE_RIG_ENGINE"] !== "1") return [];
  const cleanUp = (end: () => Promise<void>): void => campaign.atEnd(end);
  const [database, store] = await Promise.all([startPostgres(cleanUp), startStore("versitygw", cleanUp)]);
  const name = await database.createDatabase();
  const file = join(await campaign.folder("memory"), "engine-url");
  const password = encodeURIComponent(database.password);
  await writeFile(file, `postgres://grove:${password}@127.0.0.1:${database.port}/${name}\n`, { mode: 0o600 });
  const query = new URLSearchParams({
    endpoint: `http://127.0.0.1:${store.port}`,
    credentials: store.credentialsFile,
  });
  return ["-engine_file", file, "-store", `s3://${store.bucket}/rig?${query.toString()}`];
}
