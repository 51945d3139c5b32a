// Tests of cut folder transfers and updates against a real FileServer process: only differences move.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { TestClient, VerbInput, VerbResult } from "./client.fixture.ts";
import { type ServerProcess, spawnGrove } from "./server-processes.fixture.ts";
import { signedInClient } from "./signed-in-client.fixture.ts";
import type { VerbModule } from "./verbs.ts";

const MANY = 2_000;
const FOLDERS = 8;
/** Where all of them are sent whole, once for all tests that only need them there. */
const WHOLE = "/whole";

let client: TestClient;
let server: ServerProcess;
let many = "";

before(async () => {
  ({ client, server } = await signedInClient());
  many = join(client.folder, "many");
  for (let at = 0; at < FOLDERS; at++) mkdirSync(join(many, `d${at}`, "deeper"), { recursive: true });
  for (let at = 0; at < MANY; at++) {
    writeFileSync(join(many, `d${at % FOLDERS}`, "deeper", `f${at}`), `content of ${at}`.padEnd(2_000));
  }
});

after(async () => {
  await server.kill("SIGKILL");
  await client.stop();
});

const run = (verb: Promise<VerbModule>, words: readonly string[], input?: VerbInput): Promise<VerbResult> =>
  client.run(verb, words, input);

async function ok(verb: Promise<VerbModule>, words: readonly string[], input?: VerbInput): Promise<string> {
  const result = await run(verb, words, input);
  assert.equal(result.code, 0, `${words.join(" ")}: ${result.err}`);
  return result.out;
}

interface Moved {
  readonly files: number;
  readonly unchanged: number;
}

const put = async (...words: string[]): Promise<Moved> =>
  JSON.parse(await ok(import("./put-command.ts"), ["--json", ...words])) as Moved;
const get = async (...words: string[]): Promise<Moved> =>
  JSON.parse(await ok(import("./get-command.ts"), ["--json", ...words])) as Moved;
const names = async (path: string): Promise<string[]> =>
  (await ok(import("./ls-command.ts"), [path])).split("\n").filter((name) => name !== "");
const content = (path: string): Promise<string> => ok(import("./cat-command.ts"), [path]);

function tree(name: string, files: Readonly<Record<string, string>>): string {
  const top = join(client.folder, name);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(top, path, ".."), { recursive: true });
    writeFileSync(join(top, path), text);
    utimesSync(join(top, path), 1_000, 1_000);
  }
  return top;
}

/** Runs the program until a condition holds, and ends it by a signal. */
async function cut(
  words: readonly string[],
  signal: NodeJS.Signals,
  isTrue: () => Promise<boolean>,
): Promise<{ code: number | null; err: string }> {
  const child = spawnGrove(words, client.env);
  let err = "";
  child.stderr?.on("data", (piece: Buffer) => {
    err += piece.toString();
  });
  const ended = once(child, "close");
  while (!(await isTrue())) {
    assert.equal(child.exitCode, null, `it ended too early: ${err}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  child.kill(signal);
  await ended;
  return { code: child.exitCode, err };
}

async function inodes(): Promise<number> {
  return (JSON.parse(await ok(import("./quota-command.ts"), ["--json"])) as { inodes: number }).inodes;
}

function localFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);
}

test("a put -r that was killed goes on by the same command in the same place, and sends nothing twice that is whole there", async () => {
  const begun = await inodes();
  const words = ["put", "-r", many, "/moved"];
  await cut(words, "SIGKILL", async () => (await inodes()) > begun + 300);
  const there = (await inodes()) - begun;
  assert.ok(there < MANY, "it was not cut");
  const went = await put("-r", many, "/moved");
  assert.equal(went.files + went.unchanged, MANY);
  assert.ok(went.unchanged >= there - 1 - 2 * FOLDERS, `${went.unchanged} of ${there} were not sent again`);
  assert.deepEqual(
    await names("/moved"),
    [...Array(FOLDERS).keys()].map((at) => `d${at}/`),
  );
  const back = join(client.folder, "moved-back");
  await get("-r", "/moved", back);
  for (let at = 0; at < MANY; at += 97) {
    const path = join(`d${at % FOLDERS}`, "deeper", `f${at}`);
    assert.equal(readFileSync(join(back, path), "utf8"), readFileSync(join(many, path), "utf8"));
  }
});

test("a second run of a put -r that is under way is refused in words, before it writes anything down; the first goes on", async () => {
  const begun = await inodes();
  const words = ["put", "-r", many, WHOLE];
  const child = spawnGrove(words, client.env);
  const ended = once(child, "close");
  while ((await inodes()) <= begun + 50) await new Promise((resolve) => setTimeout(resolve, 10));
  child.kill("SIGSTOP");
  try {
    const second = await run(import("./put-command.ts"), ["-r", many, WHOLE]);
    assert.equal(second.code, 1, second.err);
    assert.match(
      second.err,
      /another grove put of \S+many to \/whole is running \(process \d+\)\. Wait for it, or stop it: the same command then goes on/i,
    );
    assert.ok(second.err.includes(`(process ${child.pid})`), second.err);
    // Another place is another transfer.
    const other = tree("meanwhile", { a: "a" });
    assert.equal((await put("-r", other, "/meanwhile")).files, 1);
  } finally {
    child.kill("SIGCONT");
  }
  await ended;
  assert.equal(child.exitCode, 0);
  assert.equal((await inodes()) - begun - 3, MANY + 2 * FOLDERS, "in one place");
  assert.equal((await put("-r", "--update", many, WHOLE)).files, 0);
  const held = readdirSync(join(client.env["GROVE_CONFIG_DIR"] ?? "", "transfers")).filter((name) =>
    name.includes(".held"),
  );
  assert.deepEqual(held, []);
});

test("Ctrl-C says how much is there and what to type, and that goes on", async () => {
  const begun = await inodes();
  const { code, err } = await cut(["put", "-r", many, "/stopped"], "SIGINT", async () => {
    return (await inodes()) > begun + 300;
  });
  assert.equal(code, 130, err);
  const told =
    /interrupted: ([\d,]+) of (?:at least )?[\d,]+ files are in \/stopped \([\d.]+ [KM]iB of them sent now\)\. To go on from there, type: grove (put -r \S+many \/stopped)\n/.exec(
      err,
    );
  assert.ok(told, err);
  const whole = Number(told[1]?.replace(",", ""));
  assert.ok(whole > 0 && whole < MANY, err);
  const again = await run(import("./put-command.ts"), (told[2] ?? "").split(" ").slice(1));
  assert.equal(again.code, 0, again.err);
  assert.match(
    again.err,
    /many: going on in \/stopped, where the upload of \d{4}-\d\d-\d\d \d\d:\d\d was cut/,
  );
  assert.match(again.err, /uploaded [\d,]+ files, .*, [\d,]+ files there already/);
  const counted = /uploaded ([\d,]+) files/.exec(again.err)?.[1] ?? "";
  assert.ok(Number(counted.replace(",", "")) <= MANY - whole, again.err);
});

test("a get -r that was killed goes on by the same command, leaves nothing half-written and fetches nothing twice", async () => {
  await put("-r", "--update", many, WHOLE);
  const into = join(client.folder, "fetched");
  const whole = (): number => localFiles(into).filter((name) => name.startsWith("f")).length;
  await cut(["get", "-r", WHOLE, into], "SIGKILL", async () => whole() > 300);
  const there = whole();
  assert.ok(there < MANY, "it was not cut");
  const left = join(into, "d0", ".grove-get-abcdefghijkl-4999999-1.part");
  writeFileSync(left, "half");
  const went = await get("-r", WHOLE, into);
  assert.equal(went.files + went.unchanged, MANY);
  assert.ok(went.unchanged >= there, `${went.unchanged} of ${there} were not fetched again`);
  assert.deepEqual(
    readdirSync(into).sort(),
    [...Array(FOLDERS).keys()].map((at) => `d${at}`),
  );
  assert.deepEqual(
    localFiles(into).filter((name) => name.endsWith(".part")),
    [],
  );
  assert.equal(localFiles(into).length, MANY);
});

test("an interrupted get says how much is there and what to type", async () => {
  await put("-r", "--update", many, WHOLE);
  const into = join(client.folder, "stopped");
  const { code, err } = await cut(["get", "-r", WHOLE, into], "SIGINT", async () => {
    return localFiles(into).length > 300;
  });
  assert.equal(code, 130, err);
  assert.match(
    err,
    /interrupted: [\d,]+ of (at least )?[\d,]+ files are in \S+\/stopped \(.* of them fetched now\)\. To go on from there, type: grove get -r \/whole \S+stopped\n/,
  );
});

test("an upload of which some files failed goes on too; without a cut the next put -r goes into the folder, as cp -r does", async () => {
  const env = client.env;
  client.env = { ...env, GROVE_CONFIG_DIR: join(client.folder, "carol") };
  try {
    await ok(import("./login-command.ts"), ["--mock", "carol@example.com", "--fileserver", server.address]);
    await ok(import("./quota-command.ts"), ["set", "carol@example.com", "1MiB", "--admin-password-stdin"], {
      stdin: "correct horse\n",
    });
    const top = tree("failing", { fits: "fits", "sub/large": "" });
    truncateSync(join(top, "sub/large"), 5_000_000);
    const failed = await run(import("./put-command.ts"), ["-r", top, "/failing"]);
    assert.equal(failed.code, 5, failed.err);
    assert.match(failed.err, /To send what is missing, type: grove put -r \S+failing \/failing\n/);
    truncateSync(join(top, "sub/large"), 100_000);
    assert.deepEqual(
      await put("-r", top, "/failing").then(({ files, unchanged }) => [files, unchanged]),
      [1, 1],
    );
    assert.deepEqual(await names("/failing"), ["fits", "sub/"]);
    assert.deepEqual(
      await put("-r", top, "/failing").then(({ files, unchanged }) => [files, unchanged]),
      [2, 0],
    );
    assert.deepEqual(await names("/failing"), ["failing/", "fits", "sub/"]);
  } finally {
    client.env = env;
  }
});

/** Makes an upload fail at one file, where the cluster has a folder of its name. */
async function cutAtClash(top: string, target: string): Promise<void> {
  const { code } = await run(import("./put-command.ts"), ["-q", "-r", top, target]);
  assert.equal(code, 1);
}

test("going on where something was before, only the same content counts as sent", async () => {
  const top = tree("older", { same: "same", other: "old", clash: "file" });
  await ok(import("./mkdir-command.ts"), ["-p", "/older/older/clash"]);
  await put("-q", join(top, "other"), "/older/older");
  writeFileSync(join(top, "other"), "new");
  utimesSync(join(top, "other"), 1_000, 1_000);
  // The failing run sends the file, which then changes under the same size and time.
  await cutAtClash(top, "/older");
  assert.equal(await content("/older/older/other"), "new");
  writeFileSync(join(top, "other"), "xxx");
  utimesSync(join(top, "other"), 1_000, 1_000);
  await ok(import("./rm-command.ts"), ["-r", "/older/older/clash"]);
  const went = await put("-r", top, "/older");
  assert.deepEqual([went.files, went.unchanged], [2, 1]);
  assert.equal(await content("/older/older/other"), "xxx");
});

test("a folder that was taken away or renamed since is not gone on in: another of its name is a folder to put into", async () => {
  const env = client.env;
  client.env = { ...env, GROVE_CONFIG_DIR: join(client.folder, "dave") };
  try {
    await ok(import("./login-command.ts"), ["--mock", "dave@example.com", "--fileserver", server.address]);
    await ok(import("./quota-command.ts"), ["set", "dave@example.com", "1MiB", "--admin-password-stdin"], {
      stdin: "correct horse\n",
    });
    const top = tree("renamed", { fits: "fits", large: "" });
    truncateSync(join(top, "large"), 5_000_000);
    assert.equal((await run(import("./put-command.ts"), ["-q", "-r", top, "/renamed"])).code, 5);
    await ok(import("./mv-command.ts"), ["/renamed", "/elsewhere"]);
    await ok(import("./mkdir-command.ts"), ["/renamed"]);
    truncateSync(join(top, "large"), 10);
    const went = await put("-r", top, "/renamed");
    assert.deepEqual([went.files, went.unchanged], [2, 0]);
    assert.deepEqual(await names("/renamed"), ["renamed/"]);
  } finally {
    client.env = env;
  }
});

test("put --update sends what differs in size or time, --checksum what differs in content, both to where it went first", async () => {
  const top = tree("update", { a: "a", b: "b", "sub/c": "c", "sub/d": "d" });
  await put("-r", top, "/update");
  const none = await put("-r", "--update", top, "/update");
  assert.deepEqual([none.files, none.unchanged], [0, 4]);
  writeFileSync(join(top, "a"), "longer");
  utimesSync(join(top, "b"), 2_000, 2_000);
  writeFileSync(join(top, "sub/c"), "C");
  utimesSync(join(top, "sub/c"), 1_000, 1_000);
  writeFileSync(join(top, "new"), "new");
  const told = await run(import("./put-command.ts"), ["-r", "--update", top, "/update"]);
  assert.match(told.err, /uploaded 3 files, .*, 2 files there already/);
  assert.equal(await content("/update/sub/c"), "c");
  utimesSync(join(top, "b"), 3_000, 3_000);
  const byContent = await put("-r", "--checksum", top, "/update");
  assert.deepEqual([byContent.files, byContent.unchanged], [1, 4]);
  assert.equal(await content("/update/sub/c"), "C");
  assert.deepEqual(await names("/update"), ["a", "b", "new", "sub/"]);
  const single = await put("--update", join(top, "a"), join(top, "new"), "/update");
  assert.deepEqual([single.files, single.unchanged], [0, 2]);
});

test("get --update and --checksum fetch what differs, to where it went first", async () => {
  const top = tree("down", { a: "a", b: "b", "sub/c": "c" });
  await put("-r", top, "/down");
  const into = join(client.folder, "down-back");
  await get("-r", "/down", into);
  const same = await get("-r", "--update", "/down", into);
  assert.deepEqual([same.files, same.unchanged], [0, 3]);
  writeFileSync(join(into, "a"), "A");
  utimesSync(join(into, "a"), 1_000, 1_000);
  writeFileSync(join(into, "b"), "changed");
  rmSync(join(into, "sub"), { recursive: true });
  const updated = await get("-r", "--update", "/down", into);
  assert.deepEqual([updated.files, updated.unchanged], [2, 1]);
  assert.equal(readFileSync(join(into, "a"), "utf8"), "A");
  const byContent = await get("-r", "--checksum", "/down", into);
  assert.deepEqual([byContent.files, byContent.unchanged], [1, 2]);
  assert.equal(readFileSync(join(into, "a"), "utf8"), "a");
  assert.equal(statSync(join(into, "a")).mtimeMs, 1_000_000);
  assert.deepEqual(readdirSync(into).sort(), ["a", "b", "sub"]);
});

test("an update of thousands of files that are all there asks the server for its folders, and for no file", async () => {
  await put("-r", "--update", many, WHOLE);
  const again = await run(import("./put-command.ts"), ["-r", "--update", "--verbose", many, WHOLE]);
  assert.equal(again.code, 0, again.err);
  assert.match(again.err, /uploaded 0 files, .*2,000 files there already/);
  const requests = again.err.split("request ").length - 1;
  assert.ok(requests < 5 + 3 * (2 * FOLDERS + 1), `${requests} requests`);
});

test("what is no file any more, or no folder, is told and left as it is, until what is told takes it away", async () => {
  const top = tree("kinds", { thing: "file", "other/x": "x" });
  await put("-r", top, "/kinds");
  renameSync(join(top, "thing"), join(top, "kept"));
  rmSync(join(top, "other"), { recursive: true });
  writeFileSync(join(top, "other"), "a file now");
  mkdirSync(join(top, "thing"));
  writeFileSync(join(top, "thing", "inside"), "inside");
  const result = await run(import("./put-command.ts"), ["-r", "--update", top, "/kinds"]);
  assert.equal(result.code, 1);
  assert.match(result.err, /\/kinds\/thing/);
  assert.match(result.err, /other/);
  assert.equal(await content("/kinds/thing"), "file");
  assert.equal(await content("/kinds/kept"), "file");
  assert.match(result.err, /grove rm \/kinds\/thing\n.*grove rm -r \/kinds\/other\n/s);
  await ok(import("./rm-command.ts"), ["/kinds/thing"]);
  await ok(import("./rm-command.ts"), ["-r", "/kinds/other"]);
  await put("-r", "--update", top, "/kinds");
  assert.deepEqual(
    [await content("/kinds/thing/inside"), await content("/kinds/other")],
    ["inside", "a file now"],
  );
});

test("two sources that would become one file are refused before anything is sent", async () => {
  const [one, two] = [tree("one", { report: "of one" }), tree("two", { report: "of two" })];
  await ok(import("./mkdir-command.ts"), ["/inbox"]);
  const both = [join(one, "report"), join(two, "report")];
  const { code, err } = await run(import("./put-command.ts"), [...both, "/inbox"]);
  assert.equal(code, 1, err);
  assert.match(err, /one\/report and .*two\/report, would become \/inbox\/report/);
  assert.deepEqual(await names("/inbox"), []);
});

test("bytes at an offset go into a file that is there, which --new refuses", async () => {
  const { code, err } = await run(import("./write-command.ts"), ["--new", "--offset", "0", "/inbox/new"], {
    stdin: "x",
  });
  assert.equal(code, 1, err);
  assert.match(err, /--new does not go with --offset/);
});
