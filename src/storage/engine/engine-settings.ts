// Where the shared engine lies, from the flags that name it: database and object store, without a secret.
import { GroveError } from "#base/errors.ts";
import {
  hasPassword,
  isPostgresUrl,
  type PostgresSettings,
  parsePostgresUrl,
  readUrlFile,
  withPasswordOf,
} from "#os/postgres-url.ts";
import { type StoreSettings, storeSettings } from "#storage/object-store/store-settings.ts";

/** Where the shared engine keeps rows and chunks. */
export interface EngineSettings {
  readonly database: PostgresSettings;
  readonly store: StoreSettings;
  /** How long other FileServers wait for a silent one. */
  readonly leaseMs?: number;
}

/** The flags as they are typed. */
export interface EngineFlags {
  readonly engine?: string;
  readonly engineFile?: string;
  readonly store?: string;
  readonly engineLease?: number;
}

/** The engine's settings; undefined for files on this node's disks. Throws BAD_ARGUMENT, without the URL. */
export async function engineSettings(
  { engine, engineFile, store, engineLease }: EngineFlags,
  env: Readonly<Record<string, string | undefined>>,
): Promise<EngineSettings | undefined> {
  if (engine !== undefined && engineFile !== undefined) throw bad("give -engine or -engine_file, not both");
  if (engine !== undefined && hasPassword(engine)) {
    throw bad(
      "a password in -engine can be read by everybody on this machine: put the URL into a file for -engine_file, " +
        "or leave the password out and set PGPASSFILE or PGPASSWORD",
    );
  }
  const url = engineFile === undefined ? engine : await readUrlFile(engineFile);
  if (url === undefined && store === undefined) return undefined;
  if (url === undefined || store === undefined) throw bad("-engine and -store belong together");
  if (!isPostgresUrl(url)) throw bad("the engine is postgres://USER@HOST/DATABASE");
  const lease = engineLease === undefined ? {} : { leaseMs: engineLease * 1_000 };
  const given = parsePostgresUrl(url, env);
  const database = engineFile === undefined ? given : withPasswordOf(engineFile, given, env);
  return { database, store: storeSettings(store), ...lease };
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
