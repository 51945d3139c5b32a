// Fixtures of share tests: make entries, share them, and list the users with access.
import type { ChangeContext, InodeId } from "#storage/contract/inode.ts";
import type { Sharing, Storage } from "#storage/contract/storage.ts";
import { inodeAt, OWNER } from "./store.fixture.ts";

export const BOB = "bob@example.com";
export const CAROL = "carol@example.com";
export const BY: ChangeContext = { owner: OWNER, by: OWNER, accessVersion: undefined };

export async function directory(storage: Storage, ...names: string[]): Promise<InodeId> {
  const parentId = inodeAt(storage, ...names.slice(0, -1)).id;
  return (await storage.createDirectory({ ...BY, parentId, name: names.at(-1) ?? "" })).inode.id;
}

export async function file(storage: Storage, ...names: string[]): Promise<InodeId> {
  const parentId = inodeAt(storage, ...names.slice(0, -1)).id;
  const change = { ...BY, parentId, name: names.at(-1) ?? "", data: Buffer.from("x"), mtimeMs: 0 };
  return (await storage.createFile(change)).inode.id;
}

export const share = (storage: Storage, inodeId: InodeId, username = BOB): Promise<Sharing> =>
  storage.shares.grant({ ...BY, inodeId, username });
export const unshare = (storage: Storage, inodeId: InodeId, username = BOB): Promise<Sharing> =>
  storage.shares.revoke({ ...BY, inodeId, username });
export const sharedAt = (storage: Storage, ...names: string[]): readonly string[] =>
  storage.resolve(OWNER, names).shared;
export const version = (storage: Storage): number => storage.root(OWNER)?.accessVersion ?? 0;
