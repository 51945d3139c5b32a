// Tests that a root moves between disks and the shared engine, all ways round, while two people work in it.
//
// `npm run try:moves` takes a large one; GROVE_MOVE_FILES, GROVE_MOVE_BYTES and GROVE_MOVE_INODES set the size,
// and GROVE_MOVE_WAY the nodes in turn, from the one where the root is made ("e1,n1").
// Inodes above the files are empty files that the storage makes by itself beforehand; they are counted and not
// fetched. The folder for temporary files needs two and a half times as many bytes.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { link, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { startProgram } from "#bench/child.ts";
import { Lane, RootUser } from "#prove/moves/lane.ts";
import { SeededRandom } from "#prove/seeded-random.ts";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { checkData } from "./checked-data.ts";
import {
  type MixedCluster,
  makeTree,
  mustBeSound,
  type NodeId,
  signIn,
  startMixedCluster,
} from "./mixed-cluster.ts";
import type { Person } from "./people.ts";

const FILES = Number(process.env["GROVE_MOVE_FILES"] ?? 400);
const BYTES = Number(process.env["GROVE_MOVE_BYTES"] ?? 40_000_000);
const INODES = Number(process.env["GROVE_MOVE_INODES"] ?? 0);
const [FIRST = "n1", ...NEXT] = (process.env["GROVE_MOVE_WAY"] ?? "n1,n2,e1,n1").split(",") as NodeId[];
/** Its time is limited to hours, and its load is larger. */
const IS_LARGE = Math.max(FILES, INODES) > 10_000;
/** Each goes by commands of its own. */
const FOLDERS = IS_LARGE ? 20 : 2;
/** Files of the tree are links to so many different ones, so that it takes little room beside the cluster. */
const DIFFERENT = 500;
const FILES_OF_BUILT_FOLDER = 1_000;
/** The specification's limit for a root that nobody may change. */
const FROZEN_MAX_MS = 5_000;
/** Bytes, and files and folders, for what people write meanwhile. */
const QUOTA_SPARE = 1_000_000_000;
/** Looks cost the processor's time, which the move needs. */
const LOOK_MS = 20;
const CHANGE_PAUSE_MS = 10;
/** Between two commands of a person, so that the root grows more slowly than it moves. */
const COMMAND_PAUSE_MS = 900;
const LIMIT_MS = IS_LARGE ? 4 * 3_600_000 : 240_000;

const run = promisify(execFile);
const places = enginePlaces();

test("a large root moves from disk to disk, to the engine and back under put -r and get -r of two people", {
  skip: places.skip,
  timeout: LIMIT_MS,
}, async (t) => {
  const cluster = await startMixedCluster(t, places);
  const { folder, own, other, engine } = cluster;
  const say = (text: string): void => {
    t.diagnostic(text);
    // What is measured takes an hour at its full size, and diagnostics come at the end.
    if (IS_LARGE) process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
  };
  // A new root lies where a node serves.
  const first = { n1: own, n2: other, ...engine }[FIRST];
  await first.start();
  const [alice, bob] = [await signIn(cluster, "alice"), await signIn(cluster, "bob")];
  const admin = await signIn(cluster, "root");
  await admin.ok(
    "quota",
    "set",
    alice.email,
    `${2 * BYTES + QUOTA_SPARE}`,
    "--inodes",
    `${2 * INODES + QUOTA_SPARE}`,
  );
  const [tree, load] = [join(folder, "tree"), join(folder, "load")];
  await makeLargeTree(tree);
  await makeTree(load, IS_LARGE ? 241 : 21);
  await alice.ok("mkdir", "/tree");
  for (const name of await readdir(tree)) {
    await alice.ok("put", "-q", "-r", join(tree, name), "/tree");
  }
  await alice.ok("put", "-q", "-r", load, "/");
  await alice.ok("share", "/load", bob.email);
  if (INODES > FILES) await build(cluster, alice);
  say(`made: ${await alice.ok("quota")}`);
  for (const server of [own, other, engine.e1, engine.e2]) if (server !== first) await server.start();
  for (const [at, to] of NEXT.entries()) {
    const from = NEXT[at - 1] ?? FIRST;
    const begunMs = performance.now();
    const seen = await moveUnderLoad(cluster, { alice, bob, load, from, to });
    const tookS = Math.round((performance.now() - begunMs) / 1_000);
    const words = `frozen ${seen.frozenMs.map(Math.round).join(", ")} ms, longest change ${Math.round(seen.longestMs)} ms`;
    say(`${from} to ${to}: ${tookS} s, ${words}, ${seen.commands} commands beside it`);
    assert.ok(Math.max(...seen.frozenMs) < FROZEN_MAX_MS, words);
    await mustBeWhole(alice, tree, join(folder, "back"));
    say(`the same files at ${to}: ${await alice.ok("quota")}`);
    await cluster.operate("root", "move", alice.email, "-confirm");
    // What is left of a large root is removed in small parts.
    while (cluster.place(alice.email).state !== "") await sleep(500);
  }
  await mustBeSound(cluster);
  for (const server of [engine.e1, engine.e2, other, own]) await server.end("SIGTERM");
  for (const { data } of [own, other]) await checkData(data);
});

/** Files of four fifths to six fifths of the mean size, in folders of two levels. */
async function makeLargeTree(tree: string): Promise<void> {
  const mean = BYTES / FILES;
  const names: string[] = [];
  for (let index = 0; index < Math.min(DIFFERENT, FILES); index++) {
    const name = `${tree}-${index}`;
    await writeFile(name, randomBytes(Math.round(mean * (0.8 + (0.4 * index) / DIFFERENT))));
    names.push(name);
  }
  for (let index = 0; index < FILES; index++) {
    const inner = join(tree, `d${index % FOLDERS}`, `e${Math.floor(index / FOLDERS) % FOLDERS}`);
    if (index < FOLDERS * FOLDERS) await mkdir(inner, { recursive: true });
    // Neighbours in one folder are different files.
    const which = (index + Math.floor(index / (FOLDERS * FOLDERS))) % names.length;
    await link(names[which] ?? "", join(inner, `f${index}`));
  }
}

/** Adds empty files to a person's root while its node is away. */
async function build({ own }: MixedCluster, { email }: Person): Promise<void> {
  await own.end("SIGTERM");
  const builder = startProgram("tree-builder");
  const folders = Math.ceil((INODES - FILES) / FILES_OF_BUILT_FOLDER);
  const atOnce = 200;
  for (let firstFolder = 0; firstFolder < folders; firstFolder += atOnce) {
    await builder.run("build", {
      directory: own.data,
      owner: email,
      firstFolder,
      folders: Math.min(atOnce, folders - firstFolder),
      filesPerFolder: FILES_OF_BUILT_FOLDER,
    });
  }
  await builder.close();
  await own.start();
}

/** What people noticed of a move. */
interface SeenMove {
  /** How long each attempt to switch kept changes waiting. */
  readonly frozenMs: readonly number[];
  /** The longest time until a file of at most 5 MB was written or removed. */
  readonly longestMs: number;
  /** Commands that ended without an error while it went on. */
  readonly commands: number;
}

/** A move, and who works in the root meanwhile. */
interface BusyMove {
  readonly alice: Person;
  readonly bob: Person;
  readonly load: string;
  readonly from: NodeId;
  readonly to: NodeId;
}

async function moveUnderLoad(
  cluster: MixedCluster,
  { alice, bob, load, from, to }: BusyMove,
): Promise<SeenMove> {
  const over = new AbortController();
  let commands = 0;
  const again = async (person: Person, words: readonly string[]): Promise<void> => {
    while (!over.signal.aborted) {
      await person.ok(...words);
      commands += 1;
      if (!over.signal.aborted) await sleep(COMMAND_PAUSE_MS);
    }
  };
  // What fails beside the move ends all of it.
  const beside = <T>(work: Promise<T>): Promise<T> => {
    work.catch((error: unknown) => over.abort(error));
    return work;
  };
  const fetched = join(cluster.folder, "by-bob");
  await mkdir(fetched);
  // The same files again and again: a root as large as it may be has room for few more.
  await alice.ok("mkdir", `/to-${to}`);
  const working = beside(
    Promise.all([
      again(alice, ["put", "-q", "-r", load, `/to-${to}`]),
      again(bob, ["get", "-q", "-r", `${alice.email}:/load`, fetched]),
    ]),
  );
  const addresses = { [from]: cluster.addressOf(from), [to]: cluster.addressOf(to) };
  const user = new RootUser(alice.email, addresses);
  const lane = new Lane(user, `/lane-${to}`, new SeededRandom(1));
  let longestMs = 0;
  const changing = beside(
    (async () => {
      while (!over.signal.aborted) {
        const begunMs = performance.now();
        await lane.step();
        longestMs = Math.max(longestMs, performance.now() - begunMs);
        await sleep(CHANGE_PAUSE_MS);
      }
    })(),
  );
  // Loads have begun before the move, and are in its middle when it switches.
  await until(() => commands > 0, "the first command");
  const frozenMs: number[] = [];
  let frozenAtMs: number | undefined;
  let seenAtMs = 0;
  await cluster.operate("root", "move", alice.email, "-to", to);
  for (;;) {
    over.signal.throwIfAborted();
    const { state } = cluster.place(alice.email);
    // From the first to the last look that has seen it: looks that come late make it no longer than it was.
    if (state === "frozen") {
      seenAtMs = performance.now();
      frozenAtMs ??= seenAtMs;
    } else if (frozenAtMs !== undefined) {
      frozenMs.push(seenAtMs - frozenAtMs);
      frozenAtMs = undefined;
    }
    if (state === "switched") break;
    await sleep(LOOK_MS);
  }
  await sleep(500);
  over.abort();
  await Promise.all([working, changing]);
  const problems = await lane.compare();
  user.close();
  assert.deepEqual(problems, []);
  assert.equal(cluster.place(alice.email).home, to);
  await run("diff", ["-r", load, join(fetched, "load")]);
  await rm(fetched, { recursive: true });
  await alice.ok("get", "-q", "-r", `/to-${to}/load`, fetched);
  await run("diff", ["-r", load, fetched]);
  await rm(fetched, { recursive: true });
  return { frozenMs, longestMs, commands };
}

/** Fetches a folder after the other, so that there need not be room for all of them once more. */
async function mustBeWhole(alice: Person, tree: string, back: string): Promise<void> {
  for (const name of await readdir(tree)) {
    await alice.ok("get", "-q", "-r", `/tree/${name}`, back);
    await run("diff", ["-r", join(tree, name), back]);
    await rm(back, { recursive: true });
  }
}
