// A shared engine of a rig's own: lets rigs that attack one FileServer attack one of the shared engine as well.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { systemFraction } from "#base/random.ts";
import { parsePostgresUrl } from "#os/postgres-url.ts";
import { checkEngine } from "#storage/engine/engine-check.ts";
import { storeSettings } from "#storage/object-store/store-settings.ts";
import { type SharedAddress, sharedAddresses } from "#storage/shared/shared-connection.ts";
import { startStore, USUAL_STORE, withoutStore } from "#testing/object-stores.ts";
import { startPostgres, withoutPostgres } from "#testing/postgres-server.ts";
import type { Campaign } from "./campaign.ts";
import type { Rig } from "./rig.ts";

/** What the machine lacks for a shared engine. */
export function lacksEngine(): string | undefined {
  const lacking = withoutPostgres() || withoutStore(USUAL_STORE);
  return lacking === false ? undefined : lacking;
}

/** The same attack on FileServers of a shared engine, where each change waits for PostgreSQL. */
export function overEngine(rig: Rig, goals: Pick<Rig, "goal" | "shortGoal" | "plantedGoal">): Rig {
  return {
    ...rig,
    ...goals,
    name: `${rig.name}-over-engine`,
    isOverEngine: true,
    proves: `${rig.proves}; on the shared engine`,
    lacks: lacksEngine,
  };
}

/** A database and a bucket. */
export interface RigEngine {
  /** What tells a FileServer of both. */
  readonly flags: readonly string[];
  readonly address: SharedAddress;
  /** Compares rows with rows and with the bucket; returns the differences in words. */
  check(): Promise<readonly string[]>;
}

/** Starts one, which ends with the campaign; undefined for a rig that is not over it. */
export async function startRigEngine(campaign: Campaign): Promise<RigEngine | undefined> {
  if (!campaign.isOverEngine) return undefined;
  const cleanUp = (end: () => Promise<void>): void => campaign.atEnd(end);
  const [database, store] = await Promise.all([startPostgres(cleanUp), startStore(USUAL_STORE, cleanUp)]);
  const name = await database.createDatabase();
  const file = join(await campaign.folder("memory"), "engine-url");
  const url = `postgres://grove:${encodeURIComponent(database.password)}@127.0.0.1:${database.port}/${name}`;
  await writeFile(file, `${url}\n`, { mode: 0o600 });
  const query = new URLSearchParams({
    endpoint: `http://127.0.0.1:${store.port}`,
    credentials: store.credentialsFile,
  });
  const storeUrl = `s3://${store.bucket}/rig?${query.toString()}`;
  const [address] = sharedAddresses(parsePostgresUrl(url, {}), {});
  if (address === undefined) throw new Error("the URL has no host");
  return {
    flags: ["-engine_file", file, "-store", storeUrl],
    address,
    async check() {
      const { differences } = await checkEngine({
        database: [address],
        bucket: storeSettings(storeUrl),
        clock: systemClock,
        fraction: systemFraction,
      });
      return differences;
    },
  };
}
