// Fixtures of tests about moving roots: two stores, the pull between them, and what a root looks like.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { CLUSTER_ROOT_NUMBERS_FROM } from "#base/limits.ts";
import { etagOf, type InodeId } from "#storage/contract/inode.ts";
import type { MoveReceipt, MoveTotals } from "#storage/contract/root-move.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { BOB, CAROL } from "./shares.fixture.ts";
import { inodeAt, OWNER, openTestStorage, patterned, readAll } from "./store.fixture.ts";

export const MOVE = "01MOVE";
export const NUMBER: number = CLUSTER_ROOT_NUMBERS_FROM + 5;

/** A store that a test may close and open again, as after a kill. */
export class Side {
  readonly directory: string;
  storage: Storage;

  private constructor(directory: string, storage: Storage) {
    this.directory = directory;
    this.storage = storage;
  }

  static async open(context: TestContext): Promise<Side> {
    const directory = temporaryDirectory(context);
    return new Side(directory, await openTestStorage(directory));
  }

  async restart(): Promise<void> {
    await this.storage.close();
    this.storage = await openTestStorage(this.directory);
  }
}

/** One round from one store to the other; returns the receipts and how much is left. */
export async function pullOnce(
  { storage: from }: Pick<Side, "storage">,
  { storage: to }: Pick<Side, "storage">,
  receipts: readonly MoveReceipt[],
): Promise<{ readonly receipts: readonly MoveReceipt[]; readonly left: number }> {
  const { buckets, left } = await from.moves.nextRound(MOVE, receipts, 50_000);
  const gone = new Set<string>();
  for (const chunk of await to.moves.missingChunks(MOVE, buckets)) {
    const bytes = await from.moves.readChunk(MOVE, chunk.name);
    if (bytes === undefined) gone.add(chunk.name);
    else await to.moves.putChunk(MOVE, chunk, bytes);
  }
  const whole = buckets.filter(
    ({ lines }) => !lines.some((line) => [...gone].some((name) => line.includes(name))),
  );
  const arrived = await to.moves.putBuckets(MOVE, whole);
  return { receipts: arrived, left: left + buckets.length };
}

/** Pulls until nothing is left, with something in between. */
export async function pullAll(
  from: Pick<Side, "storage">,
  to: Pick<Side, "storage">,
  between: () => Promise<void> = async () => undefined,
): Promise<void> {
  let receipts: readonly MoveReceipt[] = [];
  for (let left = 1; left > 0; ) {
    ({ receipts, left } = await pullOnce(from, to, receipts));
    await between();
  }
}

/** Freezes, pulls the rest, compares and switches. */
export async function switchOver(
  from: Pick<Side, "storage">,
  to: Pick<Side, "storage">,
): Promise<MoveTotals> {
  const head = await from.storage.moves.freeze(MOVE);
  await pullAll(from, to);
  const totals = await from.storage.moves.exportTotals(MOVE);
  assert.deepEqual(to.storage.moves.importTotals(MOVE), totals);
  assert.ok(totals !== undefined && totals.rows > 0);
  await from.storage.moves.depart(MOVE, "n2.example.com:50051", "n2");
  await to.storage.moves.finishImport(MOVE, head, 1);
  return totals;
}

/** Uploads whatever the access version is. */
export async function put(
  storage: Storage,
  parentId: InodeId,
  name: string,
  bytes: Buffer,
): Promise<InodeId> {
  const sink = storage.beginUpload({ owner: OWNER, sizeBytes: undefined });
  sink.beginMessage();
  await sink.write(bytes);
  sink.endMessage();
  const by = { owner: OWNER, by: OWNER, accessVersion: undefined, ifMatch: undefined, mtimeMs: 0 };
  return (await sink.commit({ ...by, parentId, name, onExists: "replace" })).inode.id;
}

/** A root with files of all kinds, shares, exclusions, trash, a link, and an upload that has begun. */
export async function fillRoot(
  storage: Storage,
  { number = NUMBER }: { readonly number?: number } = {},
): Promise<InodeId> {
  const { directoryId: parentId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT", number });
  const by = { owner: OWNER, by: OWNER, accessVersion: undefined };
  const folder = async (at: InodeId, name: string): Promise<InodeId> =>
    (await storage.createDirectory({ ...by, parentId: at, name })).inode.id;
  const top = await folder(parentId, "top");
  const inner = await folder(top, "inner");
  for (let index = 0; index < 300; index++) {
    const data = patterned(index * 20, index);
    await storage.createFile({
      ...by,
      parentId: index % 2 === 0 ? top : inner,
      name: `f${index}`,
      data,
      mtimeMs: 5,
    });
  }
  await put(storage, top, "two chunks", patterned(5_000_000));
  const sourceId = await put(storage, inner, "one chunk", patterned(200_000));
  const target = (): {
    readonly sourceId: InodeId;
    readonly parentId: InodeId;
    readonly name: string;
  } & typeof by & {
      readonly onConflict: "fail";
    } => ({ ...by, sourceId, parentId, name: "copy", onConflict: "fail" });
  await storage.copy({ by: OWNER, target, maxBytes: 1e9, maxInodes: 10, mayGoOn: () => undefined });
  await storage.shares.grant({ ...by, inodeId: top, username: BOB });
  await storage.shares.grant({ ...by, inodeId: top, username: CAROL });
  await storage.shares.revoke({ ...by, inodeId: inner, username: BOB });
  await storage.properties.change({
    ...by,
    inodeId: inner,
    edits: [{ kind: "set", namespace: "urn:x", name: "colour", xml: "<c xmlns='urn:x'>blue</c>" }],
  });
  await storage.locks.take({
    ...by,
    inodeId: inner,
    token: "urn:uuid:1",
    credential: "app:1",
    isExclusive: true,
    isDeep: true,
    note: "",
    expiresAtMs: Number.MAX_SAFE_INTEGER,
  });
  await makeLink(storage, inner);
  const old = await folder(top, "old");
  await storage.createFile({ ...by, parentId: old, name: "x", data: patterned(70), mtimeMs: 5 });
  await storage.shares.grant({ ...by, inodeId: old, username: CAROL });
  await storage.trash({ ...by, inodeId: old });
  const begun = { uploadId: "01UPLOAD", path: "/top/begun", sizeBytes: 9_000_000, mtimeMs: 5 };
  await storage.uploads.create({ ...by, ...begun, onExists: "replace", ifMatch: undefined });
  const sink = storage.uploads.open("01UPLOAD", () => undefined);
  sink.beginMessage();
  await sink.write(patterned(4_000_000));
  sink.endMessage();
  sink.acceptMessage();
  await sink.suspend();
  return parentId;
}

async function makeLink(storage: Storage, inodeId: InodeId): Promise<void> {
  const limits = { endsMs: 0, maxDownloads: 3, maxBytes: 0, maxFiles: 0 };
  const secrets = { tokenHash: "ab".repeat(32), password: "", passKey: "cd".repeat(32) };
  const link = { id: "aaaaaaaaaaaa", inodeId, kind: "read" } as const;
  const by = { owner: OWNER, by: OWNER, accessVersion: undefined };
  await storage.links.create({ ...by, ...link, ...limits, ...secrets });
  await storage.links.countDownload({
    owner: OWNER,
    id: link.id,
    inodeId,
    visitor: "v",
    isWhole: true,
    requestKey: "",
  });
}

/** Everything that users see of a root, with its contents; the same on both sides of a move. */
export async function portrait(storage: Storage): Promise<unknown> {
  const root = await againWhenRowsCome(() => storage.root(OWNER));
  assert.ok(root !== undefined);
  const entries: unknown[] = [];
  const walk = async (id: InodeId, path: string): Promise<void> => {
    const { entries: listed } = await againWhenRowsCome(() =>
      storage.list(id, { limit: 1_000, pageToken: "", sort: "name" }),
    );
    for (const inode of listed) {
      const at = `${path}/${inode.name}`;
      const isFile = inode.kind === "file";
      const bytes = isFile ? await againWhenRowsCome(() => readAll(storage, inode.id)) : undefined;
      entries.push([
        at,
        etagOf(inode),
        inode.sizeBytes,
        inode.mtimeMs,
        inode.crc32,
        bytes?.toString("latin1"),
      ]);
      if (inode.kind === "directory") await walk(inode.id, at);
    }
  };
  await walk(root.directoryId, "");
  return againWhenRowsCome(() => ({
    entries,
    usage: root.usage,
    trash: storage.listTrash(OWNER, { limit: 100, pageToken: "" }),
    shares: storage.shares.ofRoot(OWNER),
    bob: storage.shares.pathsOf(OWNER, BOB),
    upload: storage.uploads.find("01UPLOAD")?.stagedBytes,
    locks: storage.locks.ofRoot(OWNER),
    links: storage.links.ofRoot(OWNER),
    properties: storage.properties.of(inodeAt(storage, "top", "inner").id),
    propertyBytes: storage.properties.bytesIn(OWNER),
  }));
}

/** Both sides of a move that has begun, with the root as it was before. */
export async function beginMove(
  context: TestContext,
): Promise<{ readonly from: Side; readonly to: Side; readonly parentId: number; readonly before: unknown }> {
  const [from, to] = [await Side.open(context), await Side.open(context)];
  const parentId = await fillRoot(from.storage);
  const before = await portrait(from.storage);
  await from.storage.moves.beginExport({ moveId: MOVE, owner: OWNER });
  await to.storage.moves.beginImport({ moveId: MOVE, owner: OWNER, numbers: [NUMBER] });
  return { from, to, parentId, before };
}
