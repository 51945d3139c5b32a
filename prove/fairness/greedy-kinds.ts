// The ways in which one user may use up shared budgets and queues, each as far as one user can.
import { setTimeout as sleep } from "node:timers/promises";
import { OnConflict, Perm, Sort } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { type Greedy, type GreedyKind, prepared } from "./greedy-place.ts";

/** Levels of a path that a request can still name; the short form makes and copies a quarter of them. */
const DEEPEST_NAMED = 1_600;
const SHORT_DEEPEST = 400;
const FIRST_LEVELS = 100;
const LISTED = 50_000;
const SHORT_LISTED = 3_000;
const TREE_FILES = 200;
const TREE_DOUBLINGS = 6;
const SHORT_TREE_DOUBLINGS = 3;
const CHUNKED_BYTES = 300_000;
const UPLOAD_PIECE: Buffer = Buffer.alloc(1_000_000, 3);
const UPLOAD_PIECES = 8;
const UPLOADS_AT_ONCE = 64;
const SHORT_UPLOADS_AT_ONCE = 16;
const BIG_BYTES = 1_073_741_824n;
const OF_ONE_CONNECTION = 90;
/** Calls at once in the short form, whose stroke ends when all of them have. */
const SHORT_AT_ONCE = 128;
const PERMISSIONS: readonly Perm[] = [Perm.READ, Perm.WRITE, Perm.DELETE];

const copy = (greedy: Greedy, path: string, targetPath: string, at = 0): Promise<unknown> =>
  greedy.calls(at).copy({ path, targetPath, onConflict: OnConflict.FAIL }, greedy);
const mkdir = (greedy: Greedy, path: string, at = 0): Promise<unknown> =>
  greedy.calls(at).createDirectory({ path }, greedy);

/** Makes a tree as deep as renames allow, or as the server does. */
async function deepTree(greedy: Greedy, isShort: boolean): Promise<void> {
  const deepest = isShort ? SHORT_DEEPEST : DEEPEST_NAMED;
  let bottom = "/d";
  for (let level = 0; level < FIRST_LEVELS; level++, bottom += "/d") await mkdir(greedy, bottom);
  bottom = bottom.slice(0, -2);
  for (let levels = FIRST_LEVELS; levels <= deepest; levels *= 2) {
    try {
      await copy(greedy, "/d", "/e");
      await greedy.calls(0).rename({ path: "/e", targetPath: `${bottom}/d` }, greedy);
    } catch {
      return;
    }
    bottom += bottom;
  }
}

/** Makes files in a folder, and copies it into itself: twice as many each time. */
async function wideTree(greedy: Greedy, isShort: boolean): Promise<void> {
  await mkdir(greedy, "/t");
  await greedy.all(TREE_FILES, 40, (at) =>
    greedy.calls(at).createFile({ path: `/t/f${at}`, data: Buffer.from("x") }, greedy),
  );
  for (let doubled = 0; doubled < (isShort ? SHORT_TREE_DOUBLINGS : TREE_DOUBLINGS); doubled++) {
    await copy(greedy, "/t", "/u");
    await greedy.calls(0).rename({ path: "/u", targetPath: `/t/u${doubled}` }, greedy);
  }
}

async function chunkedFile(greedy: Greedy, path: string): Promise<void> {
  await greedy.calls(0).createFile({ path }, greedy);
  await greedy.calls(0).writeFile({ path, data: Buffer.alloc(CHUNKED_BYTES, 1) }, greedy);
}

async function* pieces(path: string): AsyncGenerator<object> {
  yield { part: { case: "header", value: { path } } };
  for (let at = 0; at < UPLOAD_PIECES; at++)
    yield {
      part: { case: "chunk", value: { offset: BigInt(at * UPLOAD_PIECE.length), data: UPLOAD_PIECE } },
    };
}

const deepCopies: GreedyKind = prepared(
  8,
  (greedy, { isShort }) => deepTree(greedy, isShort),
  (greedy) => greedy.insist(8, (turn) => copy(greedy, "/d", `/copy${turn}`, turn)),
);

const wideCopies: GreedyKind = prepared(
  8,
  (greedy, { isShort }) => wideTree(greedy, isShort),
  (greedy) => greedy.insist(24, (turn) => copy(greedy, "/t", `/copy${turn}`, turn)),
);

/** Makes many small writes to ranges of one file, each of which waits for the one before. */
const rangedWrites: GreedyKind = prepared(
  13,
  (greedy) => chunkedFile(greedy, "/f"),
  (greedy, { isShort }) =>
    greedy.insist(isShort ? SHORT_AT_ONCE : 13 * OF_ONE_CONNECTION, (turn) => {
      const offset = BigInt((turn * 7_919) % CHUNKED_BYTES);
      return greedy.calls(turn).writeFile({ path: "/f", offset, data: Buffer.from("w") }, greedy);
    }),
);

const sortedListings: GreedyKind = prepared(
  4,
  async (greedy, { isShort }) => {
    await mkdir(greedy, "/l");
    await greedy.all(isShort ? SHORT_LISTED : LISTED, 200, (at) =>
      greedy.calls(at).createFile({ path: `/l/${at}` }, greedy),
    );
  },
  (greedy) =>
    greedy.insist(40, (turn) =>
      greedy
        .calls(turn)
        .listDir(
          { path: "/l", sort: turn % 2 === 0 ? Sort.SIZE_DESC : Sort.MTIME_DESC, pageSize: 1_000 },
          greedy,
        ),
    ),
);

const emptyFiles: GreedyKind = prepared(
  8,
  (greedy) => mkdir(greedy, "/e"),
  (greedy) => greedy.insist(600, (turn) => greedy.calls(turn).createFile({ path: `/e/${turn}` }, greedy)),
);

const uploads: GreedyKind = prepared(
  8,
  (greedy) => mkdir(greedy, "/u"),
  (greedy, { isShort }) =>
    greedy.insist(isShort ? SHORT_UPLOADS_AT_ONCE : UPLOADS_AT_ONCE, (turn) =>
      greedy.calls(turn).uploadFile(pieces(`/u/${turn % 100}`), greedy),
    ),
);

/** Downloads a sparse file of a gigabyte, of which it reads a little now and then. */
const slowDownloads: GreedyKind = prepared(
  8,
  async (greedy) => {
    await greedy.calls(0).createFile({ path: "/big" }, greedy);
    await greedy.calls(0).writeFile({ path: "/big", truncateSize: BIG_BYTES }, greedy);
  },
  (greedy, place) =>
    greedy.insist(200, async (turn) => {
      for await (const _ of greedy.calls(turn).downloadFile({ path: "/big" }, greedy)) {
        if (place.isOver()) break;
        await sleep(200);
      }
    }),
);

const trashAndRestore: GreedyKind = prepared(
  4,
  async (greedy, { isShort }) => {
    await wideTree(greedy, isShort);
    for (let at = 0; at < 4; at++) await copy(greedy, "/t", `/x${at}`);
  },
  (greedy) =>
    greedy.insist(4, async (turn) => {
      const own = `/x${turn % 4}`;
      const { item } = await greedy.calls(turn).trashFile({ path: own }, greedy);
      if (item === undefined) return;
      await greedy.calls(turn).restoreFile({ trashId: item.trashId }, greedy);
    }),
);

/** Deletes trees for good, one after the other, while the next are made. */
const purges: GreedyKind = prepared(
  4,
  (greedy, { isShort }) => wideTree(greedy, isShort),
  (greedy) =>
    greedy.insist(6, async (turn) => {
      await copy(greedy, "/t", `/p${turn}`, turn);
      await greedy.calls(turn).trashFile({ path: `/p${turn}` }, greedy);
      await greedy.calls(turn).purgeTrash({}, greedy);
    }),
);

const explains: GreedyKind = prepared(
  8,
  (greedy) => mkdir(greedy, "/w"),
  (greedy, { isShort }) =>
    greedy.insist(isShort ? SHORT_AT_ONCE : 8 * OF_ONE_CONNECTION, (turn) =>
      greedy
        .calls(turn)
        .explain(
          { path: `/w${"/n".repeat(1_000)}`, permission: PERMISSIONS[turn % PERMISSIONS.length] as Perm },
          greedy,
        ),
    ),
);

const scrapes: GreedyKind = prepared(
  1,
  () => Promise.resolve(),
  (greedy, { metricsUrl }) =>
    greedy.insist(24, async () => {
      const answer = await fetch(metricsUrl, { signal: AbortSignal.timeout(10_000) });
      await answer.arrayBuffer();
    }),
);

/** Signs in again and again: each new session ends the oldest. */
const signIns: GreedyKind = prepared(
  4,
  () => Promise.resolve(),
  (greedy) =>
    greedy.insist(60, (turn) => {
      const metadata = { authorization: `Bearer mock-jwt.often${turn % 3}@example.com` };
      return greedy.calls(turn).registerClient({}, { metadata });
    }),
);

/** Every kind by its name. */
export const GREEDY_KINDS: Readonly<Record<string, GreedyKind>> = {
  "copies of a deep tree": deepCopies,
  "copies of a wide tree": wideCopies,
  "ranged writes to one file": rangedWrites,
  "sorted listings": sortedListings,
  "empty files": emptyFiles,
  uploads,
  "downloads read slowly": slowDownloads,
  "trash and restore": trashAndRestore,
  purges,
  explains,
  scrapes,
  "sign-ins": signIns,
};
