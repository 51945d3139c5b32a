// Compares storage with a tree in plain memory over random operations, in sequence and concurrently.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { GroveError } from "#base/errors.ts";
import { CHUNK_BYTES, INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import {
  type ModelNode,
  type ModelOperation,
  type ModelOutcome,
  nodesFrom,
  pathOf,
  sizeOf,
  TreeModel,
} from "#base/tree-model.fixture.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import {
  assertSound,
  BY_OWNER,
  OWNER,
  openTestStorage,
  patterned,
  readAll,
  upload,
} from "./store.fixture.ts";

/** Random numbers from which an operation on existing nodes is made. */
type Draw = readonly [kind: number, node: number, other: number, name: number, size: number, flag: boolean];

const draw: fc.Arbitrary<Draw> = fc.tuple(fc.nat(15), fc.nat(), fc.nat(), fc.nat(4), fc.nat(9), fc.boolean());
const SIZES = [
  0,
  1,
  1_000,
  INLINE_FILE_MAX_BYTES,
  INLINE_FILE_MAX_BYTES + 1,
  300_000,
  CHUNK_BYTES,
  CHUNK_BYTES + 1,
  17,
  70_000,
] as const;

function operationOf(
  [kind, node, other, name, size, flag]: Draw,
  model: TreeModel,
  seed: number,
): ModelOperation {
  const nodes = model.nodes();
  const pick = (index: number): ModelNode => nodes[index % nodes.length] ?? model.root;
  const bytes = patterned(SIZES[size] ?? 0, seed);
  const names = `n${name}`;
  if (kind < 2) return { op: "createDirectory", parent: pick(node), name: names };
  if (kind < 4)
    return {
      op: "createFile",
      parent: pick(node),
      name: names,
      bytes: bytes.subarray(0, INLINE_FILE_MAX_BYTES),
    };
  if (kind < 6) return { op: "upload", parent: pick(node), name: names, bytes };
  if (kind < 8)
    return {
      op: "write",
      node: pick(node),
      offset: (other * 7_919) % (CHUNK_BYTES + 10),
      bytes: bytes.subarray(0, 100_000),
    };
  if (kind < 10) {
    return {
      op: "rename",
      node: pick(node),
      parent: pick(other),
      name: names,
      onConflict: flag ? "replace" : "fail",
    };
  }
  if (kind < 12) return { op: "remove", node: pick(node), recursive: flag };
  const items = [...model.trash];
  const item = items[other % Math.max(1, items.length)];
  if (kind < 14 || item === undefined) return { op: "trash", node: pick(node) };
  const { trashId } = item;
  if (kind === 15 && size < 3) return { op: "purge", node: item, trashId };
  const onConflict = flag ? "replace" : "fail";
  return { op: "restore", node: item, trashId, names: size > 7 ? ["n0", names] : undefined, onConflict };
}

/** The answer of storage: the id of an inode, or `trash ` and that of an item. */
async function perform(storage: Storage, operation: ModelOperation): Promise<number | string | undefined> {
  switch (operation.op) {
    case "createDirectory": {
      const { parent, name } = operation;
      return (await storage.createDirectory({ ...BY_OWNER, parentId: parent.id, name })).inode.id;
    }
    case "createFile": {
      const { parent, name, bytes: data } = operation;
      return (await storage.createFile({ ...BY_OWNER, parentId: parent.id, name, data, mtimeMs: 0 })).inode
        .id;
    }
    case "upload": {
      const { parent, name, bytes } = operation;
      return (await upload(storage, { parentId: parent.id, name, bytes })).inode.id;
    }
    case "write": {
      const { node, offset, bytes: data } = operation;
      return (await storage.writeRange({ ...BY_OWNER, fileId: node.id, offset, data, ifMatch: undefined }))
        .inode.id;
    }
    case "rename": {
      const { node, parent, name, onConflict } = operation;
      return (await storage.rename({ ...BY_OWNER, inodeId: node.id, parentId: parent.id, name, onConflict }))
        .inode.id;
    }
    case "trash":
      return `trash ${(await storage.trash({ ...BY_OWNER, inodeId: operation.node.id })).item.id}`;
    case "restore": {
      const { trashId, names, onConflict } = operation;
      return (await storage.restore({ ...BY_OWNER, trashId, names, onConflict })).inode.id;
    }
    case "purge":
      await storage.purgeTrash({ owner: OWNER, trashIds: [operation.trashId] });
      return undefined;
    default:
      await storage.remove({ ...BY_OWNER, inodeId: operation.node.id, recursive: operation.recursive });
      return undefined;
  }
}

async function outcomeOf(storage: Storage, operation: ModelOperation): Promise<string | number | undefined> {
  try {
    return await perform(storage, operation);
  } catch (error) {
    if (error instanceof GroveError) return error.code;
    throw error;
  }
}

/** A new node learns its id; an existing one must have kept it. */
function compareOutcome(
  expected: ModelOutcome,
  actual: string | number | undefined,
  operation: ModelOperation,
): void {
  if (typeof expected !== "object") {
    assert.equal(actual, expected, operation.op);
    return;
  }
  if (operation.op === "trash") {
    assert.match(String(actual), /^trash /);
    operation.node.trashId = String(actual).slice("trash ".length);
    return;
  }
  assert.equal(typeof actual, "number", `${operation.op}: ${String(actual)}`);
  if (expected.id === 0) expected.id = Number(actual);
  assert.equal(actual, expected.id, operation.op);
}

/** Learns the ids of folders that a restore has made. */
function learnIds(storage: Storage, model: TreeModel): void {
  for (const node of model.nodes().filter(({ id }) => id === 0)) {
    node.id = storage.resolve(OWNER, pathOf(node)).chain.at(-1)?.id ?? 0;
  }
}

function compareTrash(storage: Storage, model: TreeModel): void {
  const { items } = storage.listTrash(OWNER, { limit: 1_000, pageToken: "" });
  assert.deepEqual(
    new Map(items.map((item) => [item.id, [item.originalPath, item.sizeBytes, item.inodeCount]])),
    new Map(
      [...model.trash].map((node) => [
        node.trashId,
        [`/${node.trashedFrom.join("/")}`, sizeOf(node), nodesFrom(node).length],
      ]),
    ),
  );
}

async function compareTree(storage: Storage, node: ModelNode, path: readonly string[]): Promise<void> {
  const { chain, missing } = storage.resolve(OWNER, path);
  assert.deepEqual(missing, [], path.join("/"));
  const inode = chain.at(-1);
  assert.equal(inode?.id, node.id);
  assert.equal(inode?.sizeBytes, sizeOf(node), `size of /${path.join("/")}`);
  if (node.children === undefined) {
    assert.equal(inode.crc32, crc32(node.bytes));
    assert.ok((await readAll(storage, node.id)).equals(node.bytes), `bytes of /${path.join("/")}`);
    return;
  }
  assert.equal(inode.childCount, node.children.size);
  const { entries } = storage.list(node.id, { limit: 1_000, pageToken: "", sort: "name" });
  assert.deepEqual(
    entries.map(({ name }) => name),
    [...node.children.keys()].toSorted(),
  );
  for (const child of node.children.values()) await compareTree(storage, child, [...path, child.name]);
}

async function compareAll(storage: Storage, model: TreeModel): Promise<void> {
  await compareTree(storage, model.root, []);
  const files = model.nodes().filter(({ children }) => children === undefined);
  assert.deepEqual(storage.root(OWNER)?.usage, {
    liveBytes: sizeOf(model.root),
    trashBytes: [...model.trash].reduce((sum, node) => sum + sizeOf(node), 0),
    stagingBytes: 0,
    fileCount: files.length,
    // The root's own directory is not counted.
    liveInodes: model.nodes().length - 1,
    trashInodes: [...model.trash].reduce((sum, node) => sum + nodesFrom(node).length, 0),
  });
  assert.equal(storage.facts().inodeCount, model.nodes().length);
  assert.equal(storage.facts().trashBytes, storage.root(OWNER)?.usage.trashBytes);
  compareTrash(storage, model);
}

/** Runs the body on fresh storage, then compares once more after a restart, and checks. */
async function onFreshStorage(
  context: TestContext,
  body: (storage: Storage, model: TreeModel) => Promise<void>,
): Promise<void> {
  const directory = temporaryDirectory(context);
  const storage = await openTestStorage(directory);
  const { directoryId } = await storage.createRoot({ owner: OWNER, rootId: "01ROOT" });
  const model = new TreeModel(directoryId);
  try {
    await body(storage, model);
    await compareAll(storage, model);
  } finally {
    await storage.close();
  }
  const again = await openTestStorage(directory);
  await compareAll(again, model);
  await again.close();
  assertSound(directory);
  rmSync(directory, { recursive: true });
}

test("random operations one after the other do what a tree in memory does (A-17)", async (context) => {
  const run = fc.asyncProperty(fc.array(draw, { minLength: 20, maxLength: 60 }), (draws) =>
    onFreshStorage(context, async (storage, model) => {
      for (const [index, numbers] of draws.entries()) {
        const operation = operationOf(numbers, model, index);
        const expected = model.apply(operation);
        compareOutcome(expected, await outcomeOf(storage, operation), operation);
        learnIds(storage, model);
      }
    }),
  );
  await fc.assert(run, { numRuns: 12, endOnFailure: true });
});

test("operations that share a transaction come out as if one after the other, refusals included (A-04)", async (context) => {
  // Uploads and ranged writes take more than one step, so their order is not determined.
  const short = draw.filter(([kind]) => kind < 4 || kind >= 8);
  const run = fc.asyncProperty(
    fc.array(fc.array(short, { minLength: 1, maxLength: 40 }), { minLength: 2, maxLength: 6 }),
    (groups) =>
      onFreshStorage(context, async (storage, model) => {
        for (const group of groups) {
          // Ids are known only for nodes from before the group.
          const operations = group.map((numbers, index) => operationOf(numbers, model, index));
          const outcomes = operations.map((operation) => outcomeOf(storage, operation));
          for (const [index, operation] of operations.entries()) {
            compareOutcome(model.apply(operation), await outcomes[index], operation);
          }
          learnIds(storage, model);
        }
      }),
  );
  await fc.assert(run, { numRuns: 12, endOnFailure: true });
});
