// Every operation that makes files or folders is refused alike in a full root and at the inode limit.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { checkStorage } from "#storage/check/check-storage.ts";
import { COPY_SLICE_ROWS } from "#storage/writer/copy-commands.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { OnConflict, Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  chunk,
  header,
  parts,
  refusal,
  startTestNode,
  type TestNode,
  type TestUser,
  type UploadPart,
} from "./node.fixture.ts";

let dataFolder: string;
let node: TestNode;
let admin: TestUser;
let users = 0;
before(async () => {
  dataFolder = scratchFolder("grove-create-rule-");
  node = await startTestNode({ dataFolder, env: { SVC_ADMIN_EMAIL: "root@example.com" } });
  admin = await node.signIn("root@example.com");
});
after(async () => {
  await node.stop();
  assert.deepEqual(checkStorage(dataFolder, { repair: false, deep: false }).differences, []);
});

const EMPTY = Buffer.alloc(0);
const KNOWN = { size: 0n, sizeKnown: true };

/** A root with 10 bytes in /full, and a sharee of /shared. */
interface Root {
  readonly owner: TestUser;
  readonly sharee: TestUser;
  readonly root: string;
}

async function newRoot(): Promise<Root> {
  const [owner, sharee] = [
    await node.signIn(`owner${++users}@example.com`),
    await node.signIn(`sharee${users}@example.com`),
  ];
  await owner.call.createFile({ path: "/full", data: Buffer.from("0123456789") });
  await owner.call.createFile({ path: "/empty" });
  await owner.call.createDirectory({ path: "/shared" });
  await owner.call.share({ path: "/shared", user: sharee.email });
  return { owner, sharee, root: owner.email };
}

async function setLimits(owner: TestUser, quotaBytes: bigint, inodeLimit: bigint): Promise<void> {
  const reply = await admin.call.setQuota({ username: owner.email, quotaBytes, inodeLimit });
  assert.deepEqual([reply.success, reply.inodeLimit], [true, inodeLimit]);
}

/** Nothing more fits, by one of the two limits, which lie exactly at the present usage. */
const LIMITS = {
  QUOTA_EXCEEDED: async (owner: TestUser) => setLimits(owner, (await usage(owner)).usedBytes, 1_000n),
  INODE_LIMIT: async (owner: TestUser) => setLimits(owner, 1_000_000n, (await usage(owner)).inodes),
};
type Limit = keyof typeof LIMITS;

const usage = (user: TestUser) => user.call.getQuota({});

/** Prepares while there is room; runs the returned action when there is none. */
type Row = (root: Root) => Promise<() => Promise<unknown>>;

async function trashed({ owner }: Root, path: string): Promise<string> {
  return (await owner.call.trashFile({ path })).item?.trashId ?? assert.fail();
}

/** An upload whose client ends it when `go` is settled. */
async function* endingLater(path: string, go: Promise<unknown>): AsyncGenerator<UploadPart> {
  yield header(path, KNOWN);
  await go;
}

const MAKING: Readonly<Record<string, Row>> = {
  "an empty CreateFile":
    async ({ owner }) =>
    () =>
      owner.call.createFile({ path: "/new" }),
  CreateDirectory:
    async ({ owner }) =>
    () =>
      owner.call.createDirectory({ path: "/new" }),
  "an empty UploadFile":
    async ({ owner }) =>
    () =>
      owner.upload(parts("/new", EMPTY, 1)),
  "an empty UploadFile of unknown size":
    async ({ owner }) =>
    () =>
      owner.upload([header("/new")]),
  "an empty BeginUpload":
    async ({ owner }) =>
    () =>
      owner.call.beginUpload({ path: "/new", size: 0n }),
  "an UploadFile that was begun with size 0 when there was room": async ({ owner }) => {
    const { uploadId } = await owner.call.beginUpload({ path: "/new", size: 0n });
    return () => owner.upload([header("", { uploadId })]);
  },
  "an UploadFile over a file that is elsewhere when it ends": async ({ owner }) => {
    return async () => {
      const go = Promise.withResolvers<void>();
      const upload = owner.upload(endingLater("/empty", go.promise));
      upload.catch(() => undefined);
      while (node.node.service.ledger.openAccounts === 0) await new Promise((turn) => setImmediate(turn));
      await owner.call.rename({ path: "/empty", targetPath: "/moved" });
      go.resolve();
      return upload;
    };
  },
  "a Copy of an empty file": async ({ owner }) => {
    return () => owner.call.copy({ path: "/empty", targetPath: "/new" });
  },
  "a Copy of an empty folder": async ({ owner }) => {
    return () => owner.call.copy({ path: "/shared", targetPath: "/new" });
  },
  "a RestoreFile to a path whose folders are missing": async (root) => {
    const trashId = await trashed(root, "/empty");
    return () => root.owner.call.restoreFile({ trashId, targetPath: "/new/folder/f" });
  },
  "a RestoreFile to where it was, when the folder is gone": async (root) => {
    await root.owner.call.createDirectory({ path: "/gone" });
    await root.owner.call.createFile({ path: "/gone/f" });
    const trashId = await trashed(root, "/gone/f");
    await root.owner.call.deleteFile({ path: "/gone" });
    return () => root.owner.call.restoreFile({ trashId });
  },
  "a sharee's CreateFile": async ({ sharee, root }) => {
    return () => sharee.call.createFile({ root, path: "/shared/new" });
  },
  "a sharee's UploadFile": async ({ sharee, root }) => {
    return () => sharee.upload(parts("/shared/new", EMPTY, 1, { root }));
  },
};

/** A sharee's change of a file with 4 bytes, which makes a second file in the owner's trash (D13). */
const KEEPING: Readonly<Record<string, Row>> = {
  "a sharee's UploadFile over a file": async ({ owner, sharee, root }) => {
    await owner.call.createFile({ path: "/shared/f", data: Buffer.from("text") });
    return () => sharee.upload(parts("/shared/f", EMPTY, 1, { root }));
  },
  "a sharee's cut": async ({ owner, sharee, root }) => {
    await owner.call.createFile({ path: "/shared/f", data: Buffer.from("text") });
    return () => sharee.call.writeFile({ root, path: "/shared/f", truncateSize: 0n });
  },
};

const FREE: Readonly<Record<string, Row>> = {
  Rename:
    async ({ owner }) =>
    () =>
      owner.call.rename({ path: "/empty", targetPath: "/renamed" }),
  "a Rename over a file": async ({ owner }) => {
    const onConflict = OnConflict.REPLACE;
    return () => owner.call.rename({ path: "/empty", targetPath: "/full", onConflict });
  },
  "an UploadFile over the owner's own file": async ({ owner }) => {
    return () => owner.upload(parts("/empty", EMPTY, 1));
  },
  "a WriteFile of no bytes":
    async ({ owner }) =>
    () =>
      owner.call.writeFile({ path: "/empty" }),
  "the owner's cut":
    async ({ owner }) =>
    () =>
      owner.call.writeFile({ path: "/full", truncateSize: 1n }),
  TrashFile:
    async ({ owner }) =>
    () =>
      owner.call.trashFile({ path: "/shared" }),
  "a RestoreFile to where it was": async (root) => {
    const trashId = await trashed(root, "/full");
    return () => root.owner.call.restoreFile({ trashId });
  },
  "a RestoreFile to another folder that is there": async (root) => {
    const trashId = await trashed(root, "/full");
    return () => root.owner.call.restoreFile({ trashId, targetPath: "/shared/f" });
  },
  "a RestoreFile beside what has taken its name": async (root) => {
    const trashId = await trashed(root, "/empty");
    await root.owner.call.createFile({ path: "/empty" });
    return () => root.owner.call.restoreFile({ trashId, onConflict: OnConflict.RENAME });
  },
  PurgeTrash: async (root) => {
    const trashId = await trashed(root, "/empty");
    return () => root.owner.call.purgeTrash({ trashIds: [trashId] });
  },
  DeleteFile:
    async ({ owner }) =>
    () =>
      owner.call.deleteFile({ path: "/empty" }),
};

async function isRefused(row: Row, limit: Limit): Promise<void> {
  const root = await newRoot();
  const act = await row(root);
  await LIMITS[limit](root.owner);
  const earlier = await usage(root.owner);
  const { reason, code, error } = await refusal(act());
  assert.deepEqual([reason, code], [limit, 8]);
  const later = await usage(root.owner);
  assert.deepEqual([later.usedBytes, later.inodes], [earlier.usedBytes, earlier.inodes]);
  if (limit === "INODE_LIMIT") {
    assert.equal(error.metadata.get("svc-inodes"), String(earlier.inodes));
    assert.equal(error.metadata.get("svc-inode-limit"), String(earlier.inodes));
  }
  await setLimits(root.owner, 1_000_000n, 1_000n);
}

for (const limit of ["QUOTA_EXCEEDED", "INODE_LIMIT"] as const) {
  for (const [name, row] of Object.entries(MAKING)) {
    test(`${name} is refused with ${limit} (spec 4.6.1)`, () => isRefused(row, limit));
  }
  for (const [name, row] of Object.entries(FREE)) {
    test(`${name} makes nothing and works where others get ${limit} (D14)`, async () => {
      const root = await newRoot();
      const act = await row(root);
      await LIMITS[limit](root.owner);
      await act();
    });
  }
}

for (const [name, row] of Object.entries(KEEPING)) {
  test(`${name} keeps the old one in the trash, which the inode limit may refuse (D13)`, () =>
    isRefused(row, "INODE_LIMIT"));
  test(`${name} makes no new file, so that a full quota does not refuse it (T2)`, async () => {
    const root = await newRoot();
    const act = await row(root);
    await LIMITS.QUOTA_EXCEEDED(root.owner);
    await act();
    assert.equal((await usage(root.owner)).trashInodes, 1n);
  });
}

test("an upload that was begun is refused before its first byte, and not at its end (D15)", async () => {
  for (const limit of ["QUOTA_EXCEEDED", "INODE_LIMIT"] as const) {
    const { owner } = await newRoot();
    const { uploadId } = await owner.call.beginUpload({ path: "/new", size: 0n });
    await LIMITS[limit](owner);
    const end = Promise.withResolvers<void>();
    async function* unended(): AsyncGenerator<UploadPart> {
      yield header("", { uploadId });
      await end.promise;
    }
    const upload = owner.call.uploadFile(unended(), { timeoutMs: 5_000 });
    assert.equal((await refusal(upload)).reason, limit);
    end.resolve();
    // A full quota ends an upload (spec 3.5); at the inode limit the sender may make room and go on.
    const isKept = (await owner.call.getUpload({ uploadId }).catch(() => undefined)) !== undefined;
    assert.equal(isKept, limit === "INODE_LIMIT");
  }
});

test("each of them passes with room for one more, and what was made counts", async () => {
  for (const [name, row] of [...Object.entries(MAKING), ...Object.entries(KEEPING)]) {
    const root = await newRoot();
    const act = await row(root);
    const { inodes } = await usage(root.owner);
    // A folder on the way to a restored file is one of two.
    const room = name.includes("folders are missing") ? 2n : 1n;
    await setLimits(root.owner, 1_000_000n, inodes + room);
    await act();
    const made = (await usage(root.owner)).inodes - inodes;
    assert.equal(made, name === "an empty BeginUpload" ? 0n : room, name);
  }
});

test("many creations at once fill the root exactly to its inode limit", async () => {
  const { owner } = await newRoot();
  await setLimits(owner, 1_000_000n, 20n);
  const results = await Promise.allSettled(
    Array.from({ length: 80 }, (_, at) =>
      at % 2 === 0
        ? owner.call.createFile({ path: `/f${at}` })
        : owner.upload([header(`/f${at}`, { size: 1n, sizeKnown: true }), chunk(0, Buffer.from("x"))]),
    ),
  );
  const made = results.filter(({ status }) => status === "fulfilled").length;
  const { inodes } = await usage(owner);
  assert.deepEqual([made, inodes], [17, 20n]);
});

test("a limit below what is there refuses new ones alone, and removals make room (D14)", async () => {
  const { owner } = await newRoot();
  await setLimits(owner, 1_000_000n, 1n);
  const { reason, message } = await refusal(owner.call.createFile({ path: "/new" }));
  assert.deepEqual(
    [reason, message],
    ["INODE_LIMIT", "inode limit reached: 3 of 1 files and folders are there, trash included"],
  );
  await owner.call.writeFile({ path: "/empty", data: Buffer.from("still written") });
  await owner.call.trashFile({ path: "/full" });
  await setLimits(owner, 1_000_000n, 3n);
  assert.equal((await refusal(owner.call.createFile({ path: "/new" }))).reason, "INODE_LIMIT");
  await owner.call.purgeTrash({});
  await owner.call.createFile({ path: "/new" });
});

test("a tree is copied whole or refused before a row is made, with what it needs in numbers", async () => {
  const { owner } = await newRoot();
  for (const path of ["/shared/a", "/shared/b", "/shared/c"]) await owner.call.createFile({ path });
  const { inodes } = await usage(owner);
  await setLimits(owner, 1_000_000n, inodes + 3n);
  const { reason, error } = await refusal(owner.call.copy({ path: "/shared", targetPath: "/copy" }));
  assert.equal(reason, "INODE_LIMIT");
  assert.equal(error.metadata.get("svc-inode-limit"), String(inodes + 3n));
  await setLimits(owner, 1_000_000n, inodes + 4n);
  const copies = ["/one", "/two"].map((targetPath) => owner.call.copy({ path: "/shared", targetPath }));
  const results = await Promise.allSettled(copies);
  assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
  assert.equal((await usage(owner)).inodes, inodes + 4n);
});

test("a copy ends when the disk comes down to its reserve between its slices, and leaves nothing (spec 4.6.3)", async () => {
  const { owner } = await newRoot();
  for (let at = 0; at < 3 * COPY_SLICE_ROWS; at += 64) {
    const paths = Array.from({ length: 64 }, (_, index) => `/shared/f${at + index}`);
    await Promise.all(paths.map((path) => owner.call.createFile({ path })));
  }
  const { inodes } = await usage(owner);
  const { freeBytes } = node.disk;
  const copy = refusal(owner.call.copy({ path: "/shared", targetPath: "/copy" }));
  while (node.node.service.ledger.openAccounts === 0) await new Promise((turn) => setImmediate(turn));
  node.disk.freeBytes = 1n;
  try {
    assert.equal((await copy).reason, "DISK_RESERVE");
  } finally {
    node.disk.freeBytes = freeBytes;
  }
  assert.equal((await usage(owner)).inodes, inodes);
  assert.equal((await refusal(owner.call.getAttr({ path: "/copy" }))).reason, "NO_SUCH_PATH");
});

test("`grove why` takes the same step: a new file is refused at the inode limit, a write into one that is there is not", async () => {
  const { owner } = await newRoot();
  await LIMITS.INODE_LIMIT(owner);
  const question = { permission: Perm.WRITE, addBytes: 0n };
  const fresh = await owner.call.explain({ ...question, path: "/new" });
  assert.deepEqual([fresh.allowed, fresh.reason, fresh.metadata["inode_limit"]], [false, "INODE_LIMIT", "3"]);
  assert.deepEqual(fresh.steps.at(-1)?.check, "quota");
  assert.equal((await owner.call.explain({ ...question, path: "/empty" })).allowed, true);
});
