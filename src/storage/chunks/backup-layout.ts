// Layout of a backup folder, and the files of a data directory that a backup takes.
import { join } from "node:path";
import { directoryOfChunk } from "./chunk-names.ts";

/** File in the data directory whose lock a running backup holds: meanwhile no chunk file is unlinked. */
export const BACKUP_LEASE_FILE = "backup.lock";
/** Marks a folder as a backup folder and names the data directory that it belongs to. */
export const BACKUP_MARK_FILE = "grove-backup.json";
/** Schema of that mark and of manifests. */
export const BACKUP_SCHEMA = 1;
/** Lock file that a process holds while it changes the backup folder. */
export const BACKUP_FOLDER_LOCK = "lock";
/** Folder with one folder per backup. */
export const BACKUPS_FOLDER = "backups";
/** Last file of a backup: a folder without it is not a backup. */
export const MANIFEST_FILE = "manifest.json";
/** Folder of a backup for the small files of the data directory. */
export const FILES_FOLDER = "files";
/** Chunk files of all backups together, each stored once. */
export const POOL_FOLDER = "chunks";

const BACKUP_ID = /^(\d{6})-\d{8}T\d{6}Z$/;
const CERTIFICATES_FOLDER = "tls";
const TAKEN_FOLDERS: readonly string[] = ["audit", CERTIFICATES_FOLDER];
const TAKEN_FILE = /^(?:cluster_id|.*\.json(?:\.previous)?)$/;
/** Certificates are public: each connection shows them. */
const CERTIFICATE_FILE = /\.crt$/;

/** True for the name of a finished backup. */
export function isBackupId(name: string): boolean {
  return BACKUP_ID.test(name);
}

/** The id of the next backup; ids sort in the order of creation, even if the clock goes back. */
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

/** True for a top-level file that a backup takes: settings, and the node's role and cluster. */
export function isTakenFile(name: string): boolean {
  return !name.startsWith(".") && TAKEN_FILE.test(name);
}

/** True for a folder of the data directory that a backup takes. */
export function isTakenFolder(name: string): boolean {
  return TAKEN_FOLDERS.includes(name);
}

/** True for a file in such a folder that a backup takes; private keys only on request. */
export function isTakenInside(folder: string, name: string, keys: boolean): boolean {
  if (name.startsWith(".")) return false;
  return folder !== CERTIFICATES_FOLDER || keys || CERTIFICATE_FILE.test(name);
}
