// Where everything lies in a folder of backups, and which files of a data directory a backup takes.
import { join } from "node:path";
import { directoryOfChunk } from "./chunk-names.ts";

/** File in the data directory whose lock a backup holds: meanwhile no chunk file is unlinked. */
export const BACKUP_LEASE_FILE = "backup.lock";
/** Marks a folder as one of backups and says whose. */
export const BACKUP_MARK_FILE = "grove-backup.json";
/** Form of that mark and of manifests. */
export const BACKUP_SCHEMA = 1;
/** Lock of whoever changes a folder of backups. */
export const BACKUP_FOLDER_LOCK = "lock";
/** Folder with one folder per backup. */
export const BACKUPS_FOLDER = "backups";
/** Last file of a backup: a folder without it is no backup. */
export const MANIFEST_FILE = "manifest.json";
/** Folder of a backup for the small files of the data directory. */
export const FILES_FOLDER = "files";
/** Chunk files of all backups together: each is there once. */
export const POOL_FOLDER = "chunks";

const BACKUP_ID = /^(\d{6})-\d{8}T\d{6}Z$/;
const CERTIFICATES_FOLDER = "tls";
const TAKEN_FOLDERS: readonly string[] = ["audit", CERTIFICATES_FOLDER];
const TAKEN_FILE = /^(?:cluster_id|.*\.json(?:\.previous)?)$/;
/** Certificates are shown to everybody who connects. */
const CERTIFICATE_FILE = /\.crt$/;

/** True for what names a finished backup. */
export function isBackupId(name: string): boolean {
  return BACKUP_ID.test(name);
}

/** The id of the backup after those there are; ids sort as the backups follow each other, whatever the clock says. */
export function nextBackupId(ids: readonly string[], nowMs: number): string {
  const last = Math.max(0, ...ids.map((id) => Number(BACKUP_ID.exec(id)?.[1] ?? 0)));
  const time = new Date(nowMs)
    .toISOString()
    .replace(/[-:]/g, "")
    .replace(/\.\d+Z$/, "Z");
  return `${String(last + 1).padStart(6, "0")}-${time}`;
}

/** Path of a chunk in the pool. */
export function poolPath(folder: string, name: string): string {
  return join(folder, POOL_FOLDER, directoryOfChunk(name), name);
}

/** Whether a backup takes a file of the data directory's top level: settings, and what the node was and in which cluster. */
export function isTakenFile(name: string): boolean {
  return !name.startsWith(".") && TAKEN_FILE.test(name);
}

/** Whether a backup takes a folder of the data directory. */
export function isTakenFolder(name: string): boolean {
  return TAKEN_FOLDERS.includes(name);
}

/** Whether a backup takes a file that lies in such a folder; private keys only where that is asked for. */
export function isTakenInside(folder: string, name: string, keys: boolean): boolean {
  if (name.startsWith(".")) return false;
  return folder !== CERTIFICATES_FOLDER || keys || CERTIFICATE_FILE.test(name);
}
