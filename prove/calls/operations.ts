// Every kind of change that storage makes, each in a folder of its own: its preparation and its action.
import { GroveError } from "#base/errors.ts";
import { QuotaStore } from "#quota/quota-store.ts";
import type { ChangeContext, InodeId } from "#storage/contract/inode.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { ResumableSink } from "#storage/contract/upload-store.ts";
import { OWNER, patterned } from "#storage/local/store.fixture.ts";

/** Changes by the owner, whom no share or move excludes. */
export const BY: ChangeContext = { owner: OWNER, by: OWNER, accessVersion: undefined };
/** The user with whom folders are shared. */
export const SHAREE = "bob@example.com";
/** Larger content is not kept in the database. */
const INLINE_BYTES = 65_536;
const SMALL_BYTES = 3_000;
const CHUNKED_BYTES = 70_000;
const CHUNK_BYTES = 4_000_000;
const MESSAGE_BYTES = 1_000_000;
const IDLE_MS = 1_300;
const QUOTA_BYTES = 2n ** 30n;

/** Where an operation works. */
export interface Place {
  readonly storage: Storage;
  /** The data directory. */
  readonly directory: string;
  /** Name of its folder in the root. */
  readonly folder: string;
  /** The id of an entry in its folder; of the folder itself without names. */
  id(...names: string[]): InodeId;
}

/** One kind of change. */
export interface Operation {
  readonly name: string;
  prepare?(place: Place): Promise<unknown>;
  run(place: Place): Promise<unknown>;
  /** It consists of several changes, any of which may be found without the next. */
  readonly isGradual?: true;
  /** It closes the store. */
  readonly closes?: true;
}

/** The id of the upload that an operation on uploads works with. */
export const uploadIdOf = (folder: string): string => `upload-${folder}`;

/** The place of an operation in an open store. */
export function placeIn(storage: Storage, directory: string, folder: string): Place {
  const id = (...names: string[]): InodeId => {
    const { chain, missing } = storage.resolve(OWNER, [folder, ...names]);
    if (missing.length > 0) throw new Error(`${folder}/${names.join("/")} is not there`);
    return (chain.at(-1) ?? chain[0]).id;
  };
  return { storage, directory, folder, id };
}

const small = (place: Place, name: string, length = SMALL_BYTES, parentId = place.id()): Promise<unknown> =>
  place.storage.createFile({ ...BY, parentId, name, data: patterned(length, name.length), mtimeMs: 1 });

const mkdir = (place: Place, name: string, parentId = place.id()): Promise<unknown> =>
  place.storage.createDirectory({ ...BY, parentId, name });

async function upload(
  { storage, id }: Place,
  name: string,
  bytes: Buffer,
  parentId = id(),
): Promise<unknown> {
  const sink = storage.beginUpload({ owner: OWNER, sizeBytes: bytes.length });
  try {
    sink.beginMessage();
    for (let at = 0; at < bytes.length; at += INLINE_BYTES)
      await sink.write(bytes.subarray(at, at + INLINE_BYTES));
    sink.endMessage();
    return await sink.commit({ ...BY, parentId, name, onExists: "replace", ifMatch: undefined, mtimeMs: 1 });
  } catch (error) {
    await sink.abort();
    throw error;
  }
}

const chunked = (place: Place, name: string, seed = 1, parentId = place.id()): Promise<unknown> =>
  upload(place, name, patterned(CHUNKED_BYTES, seed), parentId);

/** A folder with a small file, a chunked one and a folder with one more. */
async function tree(place: Place, name: string): Promise<void> {
  await mkdir(place, name);
  await small(place, "small", SMALL_BYTES, place.id(name));
  await chunked(place, "chunked", 7, place.id(name));
  await mkdir(place, "sub", place.id(name));
  await small(place, "deep", 10, place.id(name, "sub"));
}

const beginUpload = ({ storage, folder }: Place, sizeBytes: number): Promise<unknown> => {
  const rest = { path: `/${folder}/resumed`, onExists: "replace", ifMatch: undefined, mtimeMs: 1 } as const;
  return storage.uploads.create({ ...BY, uploadId: uploadIdOf(folder), sizeBytes, ...rest });
};

const UPLOADED = patterned(CHUNK_BYTES + CHUNKED_BYTES, 9);

async function send(
  place: Place,
  from: number,
  to: number,
  onStaged: () => void = () => undefined,
): Promise<ResumableSink> {
  const sink = place.storage.uploads.open(uploadIdOf(place.folder), onStaged);
  for (let at = from; at < to; at += MESSAGE_BYTES) {
    sink.beginMessage();
    await sink.write(UPLOADED.subarray(at, Math.min(to, at + MESSAGE_BYTES)));
    sink.endMessage();
    sink.acceptMessage();
  }
  return sink;
}

/**
 * Stages a part of an upload. The end of a stream acknowledges nothing: the store's own figure counts as
 * staged.
 */
async function stage(place: Place): Promise<void> {
  const told = { isStaged: false };
  const sink = await send(place, 0, CHUNK_BYTES, () => {
    told.isStaged = true;
  });
  await sink.suspend();
  if (told.isStaged) return;
  const { failure } = place.storage;
  throw failure === undefined ? new Error("nothing is staged") : new GroveError("STORAGE_FAILED", failure);
}

async function finish(place: Place): Promise<unknown> {
  const sink = await send(place, CHUNK_BYTES, UPLOADED.length);
  const target = { name: "resumed", onExists: "replace", ifMatch: undefined, mtimeMs: 1 } as const;
  return sink.commit({ ...BY, parentId: place.id(), ...target });
}

const renameTo = (
  place: Place,
  from: string,
  parentId: InodeId,
  name: string,
  onConflict: "fail" | "replace" = "fail",
): Promise<unknown> => place.storage.rename({ ...BY, inodeId: place.id(from), parentId, name, onConflict });

const trash = (place: Place, name: string): Promise<unknown> =>
  place.storage.trash({ ...BY, inodeId: place.id(name) });

const trashIdOf = ({ storage, folder }: Place, name: string): string =>
  storage.listTrash(OWNER, { limit: 1, pageToken: "", originalPath: `/${folder}/${name}` }).items[0]?.id ??
  "";

const remove = (place: Place, name: string): Promise<unknown> =>
  place.storage.remove({ ...BY, inodeId: place.id(name), recursive: true });

const copy = (place: Place, from: string, name: string): Promise<unknown> => {
  const target = { ...BY, sourceId: place.id(from), parentId: place.id(), name, onConflict: "fail" } as const;
  const max = Number.MAX_SAFE_INTEGER;
  return place.storage.copy({
    by: target.by,
    target: () => target,
    maxBytes: max,
    maxInodes: max,
    mayGoOn: () => undefined,
  });
};

const grant = (place: Place, name: string): Promise<unknown> =>
  place.storage.shares.grant({ ...BY, inodeId: place.id(name), username: SHAREE });

const write = (place: Place, name: string, offset: number, length: number): Promise<unknown> => {
  const data = patterned(length, 5);
  return place.storage.writeRange({ ...BY, fileId: place.id(name), offset, data, ifMatch: undefined });
};

const setSize = (place: Place, name: string, sizeBytes: number): Promise<unknown> =>
  place.storage.setSize({ ...BY, fileId: place.id(name), sizeBytes, ifMatch: undefined });

async function idle(place: Place): Promise<void> {
  await small(place, "before");
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
}

async function setQuota({ directory, folder }: Place): Promise<void> {
  const quotas = await QuotaStore.open({ dataFolder: directory });
  await quotas.set(`${folder}@example.com`, { quotaBytes: QUOTA_BYTES });
}

/** All operations. */
export const OPERATIONS: readonly Operation[] = [
  { name: "create", run: (place) => small(place, "new") },
  { name: "mkdir", run: (place) => mkdir(place, "new") },
  { name: "upload", run: (place) => chunked(place, "new") },
  { name: "upload-two-chunks", run: (place) => upload(place, "new", UPLOADED) },
  {
    name: "overwrite-chunked",
    prepare: (place) => chunked(place, "old"),
    run: (place) => chunked(place, "old", 2),
  },
  {
    name: "overwrite-with-small",
    prepare: (place) => chunked(place, "old"),
    run: (place) => upload(place, "old", patterned(100, 3)),
  },
  {
    name: "write-small",
    prepare: (place) => small(place, "old"),
    run: (place) => write(place, "old", 100, 50),
  },
  {
    name: "write-chunked",
    prepare: (place) => chunked(place, "old"),
    run: (place) => write(place, "old", 60_000, 20_000),
  },
  {
    name: "write-outgrows-database",
    prepare: (place) => small(place, "old"),
    run: (place) => write(place, "old", 2_000, INLINE_BYTES),
  },
  { name: "cut", prepare: (place) => chunked(place, "old"), run: (place) => setSize(place, "old", 66_000) },
  {
    name: "cut-to-small",
    prepare: (place) => chunked(place, "old"),
    run: (place) => setSize(place, "old", 1_000),
  },
  { name: "grow", prepare: (place) => chunked(place, "old"), run: (place) => setSize(place, "old", 90_000) },
  {
    name: "rename",
    prepare: (place) => small(place, "old"),
    run: (place) => renameTo(place, "old", place.id(), "new"),
  },
  {
    name: "move-folder",
    prepare: async (place) => {
      await tree(place, "old");
      await mkdir(place, "target");
      await grant(place, "old");
    },
    run: (place) => renameTo(place, "old", place.id("target"), "new"),
  },
  {
    name: "rename-over",
    prepare: async (place) => {
      await small(place, "source");
      await chunked(place, "target");
    },
    run: (place) => renameTo(place, "source", place.id(), "target", "replace"),
  },
  { name: "trash-file", prepare: (place) => chunked(place, "old"), run: (place) => trash(place, "old") },
  {
    name: "trash-shared-folder",
    prepare: async (place) => {
      await tree(place, "old");
      await grant(place, "old");
    },
    run: (place) => trash(place, "old"),
  },
  {
    name: "restore",
    prepare: async (place) => {
      await tree(place, "old");
      await trash(place, "old");
    },
    run: (place) => {
      const trashId = trashIdOf(place, "old");
      return place.storage.restore({ ...BY, trashId, names: undefined, onConflict: "fail" });
    },
  },
  {
    name: "purge",
    prepare: async (place) => {
      await tree(place, "old");
      await trash(place, "old");
    },
    run: (place) => place.storage.purgeTrash({ owner: OWNER, trashIds: [trashIdOf(place, "old")] }),
  },
  { name: "remove-file", prepare: (place) => chunked(place, "old"), run: (place) => remove(place, "old") },
  { name: "remove-folder", prepare: (place) => tree(place, "old"), run: (place) => remove(place, "old") },
  { name: "copy-file", prepare: (place) => chunked(place, "old"), run: (place) => copy(place, "old", "new") },
  { name: "copy-folder", prepare: (place) => tree(place, "old"), run: (place) => copy(place, "old", "new") },
  {
    name: "copy-large-folder",
    prepare: async (place) => {
      await mkdir(place, "old");
      const parentId = place.id("old");
      await Promise.all(Array.from({ length: 600 }, (_, index) => small(place, `f${index}`, 10, parentId)));
    },
    run: (place) => copy(place, "old", "new"),
  },
  { name: "share", prepare: (place) => tree(place, "old"), run: (place) => grant(place, "old") },
  {
    name: "unshare",
    prepare: async (place) => {
      await tree(place, "old");
      await grant(place, "old");
    },
    run: (place) => place.storage.shares.revoke({ ...BY, inodeId: place.id("old"), username: SHAREE }),
  },
  { name: "begin-upload", run: (place) => beginUpload(place, UPLOADED.length) },
  { name: "stage-upload", prepare: (place) => beginUpload(place, UPLOADED.length), run: stage },
  {
    name: "finish-upload",
    prepare: async (place) => {
      await beginUpload(place, UPLOADED.length);
      await stage(place);
    },
    run: finish,
  },
  {
    name: "drop-upload",
    prepare: async (place) => {
      await beginUpload(place, UPLOADED.length);
      await stage(place);
    },
    run: ({ storage, folder }) => storage.uploads.drop(uploadIdOf(folder)),
  },
  {
    name: "six-at-once",
    isGradual: true,
    run: (place) =>
      Promise.all(["a", "bb", "ccc", "dddd", "eeeee", "ffffff"].map((name) => small(place, name))),
  },
  {
    name: "two-uploads-at-once",
    isGradual: true,
    run: (place) => Promise.all([chunked(place, "a", 1), chunked(place, "b", 2)]),
  },
  { name: "set-quota", run: setQuota },
  { name: "idle", run: idle, isGradual: true },
  {
    name: "close",
    prepare: (place) => tree(place, "old"),
    run: (place) => remove(place, "old"),
    closes: true,
  },
];

/** Returns the operation of a name. */
export function operationOf(name: string): Operation {
  const operation = OPERATIONS.find((each) => each.name === name);
  if (operation === undefined) throw new Error(`no such operation: ${name}`);
  return operation;
}
