// The local folder of a process on the shared engine: its lock, its identity, and who held it before.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Random } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import {
  ENGINE_FILE,
  IDENTITY_FILE,
  IDENTITY_SCHEMA,
  lockDataDirectory,
  readIdentity,
} from "#storage/metadata/data-directory.ts";
import { DATABASE_FILE } from "#storage/metadata/schema.ts";

/** Folder of what is only a copy: cached rows, cached chunks. */
const CACHE_FOLDER = "engine";
/** The version of the last change of a person's address that this folder's files have heard of. */
const RENAMED_FILE = "renamed_up_to";
const INSTANCE_FORM = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/** A folder that this process alone holds. */
export interface EngineFolder {
  readonly dataId: string;
  readonly cacheFolder: string;
  /** This process's name in the database. */
  readonly instance: string;
  /** That of the process before, which has ended; empty for none. */
  readonly before: string;
  /** The last change of a person's address that was carried out here; undefined for a new folder. */
  readonly renamedUpTo: number | undefined;
  keepRenamedUpTo(version: number): Promise<void>;
  release(): void;
}

/** Locks the folder. Throws DATA_IN_USE, and BAD_ARGUMENT for one that holds roots of the local engine. */
export async function openEngineFolder(
  path: string,
  { clock, random }: { readonly clock: Pick<Clock, "wallMs">; readonly random: Random },
): Promise<EngineFolder> {
  makePrivateFolder(path);
  const release = lockDataDirectory(path);
  try {
    if (existsSync(join(path, DATABASE_FILE))) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `${path} holds files of the engine on local disks; name another folder for -engine`,
      );
    }
    const dataId = readIdentity(path) ?? (await makeIdentity(path, { clock, random }));
    const instance = ulid(clock, random);
    const before = readInstance(path);
    await writeFileAtomic(join(path, ENGINE_FILE), `${instance}\n`);
    const cacheFolder = join(path, CACHE_FOLDER);
    makePrivateFolder(cacheFolder);
    for (const end of ["", "-wal", "-shm"]) rmSync(join(cacheFolder, `rows.db${end}`), { force: true });
    const renamedUpTo = readRenamed(path);
    const keepRenamedUpTo = (version: number): Promise<void> =>
      writeFileAtomic(join(path, RENAMED_FILE), `${version}\n`);
    return { dataId, cacheFolder, instance, before, renamedUpTo, keepRenamedUpTo, release };
  } catch (error) {
    release();
    throw error;
  }
}

async function makeIdentity(
  path: string,
  deps: { readonly clock: Pick<Clock, "wallMs">; readonly random: Random },
): Promise<string> {
  const dataId = ulid(deps.clock, deps.random);
  const identity = { schema: IDENTITY_SCHEMA, data_id: dataId, created_at_ms: deps.clock.wallMs() };
  await writeFileAtomic(join(path, IDENTITY_FILE), `${JSON.stringify(identity)}\n`);
  return dataId;
}

function readInstance(path: string): string {
  const file = join(path, ENGINE_FILE);
  if (!existsSync(file)) return "";
  const text = readFileSync(file).toString().trim();
  return INSTANCE_FORM.test(text) ? text : "";
}

function readRenamed(path: string): number | undefined {
  const file = join(path, RENAMED_FILE);
  const text = existsSync(file) ? readFileSync(file).toString().trim() : "";
  return /^\d{1,16}$/.test(text) ? Number(text) : undefined;
}
