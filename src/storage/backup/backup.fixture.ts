// Fixtures of backup tests: a served data directory, and backups of it.
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Storage } from "#storage/contract/storage.ts";
import { BY_OWNER, OWNER, openTestStorage, patterned, upload } from "#storage/local/store.fixture.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { type BackupOrder, type BackupReport, createBackup } from "./backup-create.ts";

/** A served data directory and a place for its backups. */
export interface Lab {
  readonly directory: string;
  readonly folder: string;
  readonly storage: Storage;
  readonly parentId: number;
}

/** A served directory with a small and a large file, and a place for its backups. */
export async function lab(context: TestContext): Promise<Lab> {
  const top = temporaryDirectory(context);
  const [directory, folder] = [join(top, "data"), join(top, "backups")];
  const storage = await openTestStorage(directory);
  context.after(() => storage.close());
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  await storage.createFile({ ...BY_OWNER, parentId, name: "small", data: patterned(1_000), mtimeMs: 0 });
  await upload(storage, { parentId, name: "large", bytes: patterned(700_000) });
  return { directory, folder, storage, parentId };
}

/** Makes a backup of it, with links and without keys by default. */
export function make({ directory, folder }: Lab, more: Partial<BackupOrder> = {}): Promise<BackupReport> {
  return createBackup({
    directory,
    folder,
    keys: false,
    copies: false,
    full: false,
    nowMs: () => 1_790_000_000_000,
    progress: () => undefined,
    ...more,
  });
}
