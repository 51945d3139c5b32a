// Tests of the client against a real FileServer process: trees, sizes at the edges, refusals, interruptions.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { TestClient, VerbInput, VerbResult } from "./client.fixture.ts";
import { runGrove, type ServerProcess, spawnGrove, startFileServer } from "./server-processes.fixture.ts";
import { signedInClient } from "./signed-in-client.fixture.ts";
import type { VerbModule } from "./verbs.ts";

let client: TestClient;
let server: ServerProcess;
let port = 0;

before(async () => {
  ({ client, server, port } = await signedInClient());
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

const put = (...words: string[]): Promise<string> => ok(import("./put-command.ts"), ["-q", ...words]);
const get = (...words: string[]): Promise<string> => ok(import("./get-command.ts"), ["-q", ...words]);

/** Compares two trees name by name and byte by byte. */
function assertSameTree(one: string, other: string): void {
  const names = (folder: string): string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .map(
        (entry) =>
          `${entry.isDirectory() ? "d" : "f"} ${join(entry.parentPath, entry.name).slice(folder.length)}`,
      )
      .sort();
  assert.deepEqual(names(other), names(one));
  for (const name of names(one).filter((line) => line.startsWith("f "))) {
    const path = name.slice(2);
    assert.ok(readFileSync(join(one, path)).equals(readFileSync(join(other, path))), path);
  }
}

test("a download takes the place of a file or a link, and never that of a pipe or a device", async () => {
  const from = join(client.folder, "plain");
  writeFileSync(from, "abc");
  await put(from, "/plain");
  const pipe = join(client.folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const link = join(client.folder, "link to pipe");
  symlinkSync(pipe, link);
  for (const target of [pipe, link]) {
    const { code, err } = await run(import("./get-command.ts"), ["/plain", target]);
    assert.equal(code, 1);
    assert.match(err, /is neither a file nor a folder\. To send the bytes there: grove cat/);
  }
  assert.ok(statSync(pipe).isFIFO());
  const dangling = join(client.folder, "dangling");
  symlinkSync(join(client.folder, "nowhere"), dangling);
  await get("/plain", dangling);
  assert.equal(readFileSync(dangling, "utf8"), "abc");
});

test("a download of a tree leaves pipes in its way as they are, and brings all other files", async () => {
  const tree = join(client.folder, "past pipes");
  const there = join(client.folder, "with pipes", "past pipes");
  for (const folder of [tree, there]) mkdirSync(folder, { recursive: true });
  const names = ["small", "large", "huge"];
  for (const [at, name] of names.entries()) {
    writeFileSync(join(tree, name), randomBytes(10 ** (3 + 2 * at)));
    execFileSync("mkfifo", [join(there, name)]);
  }
  symlinkSync(join(there, "small"), join(there, "link"));
  for (const name of ["link", "other"]) writeFileSync(join(tree, name), name);
  await put("-r", tree, "/");
  const words = ["-r", "/past pipes", join(client.folder, "with pipes"), "--json"];
  const { code, out } = await run(import("./get-command.ts"), words);
  assert.equal(code, 1, out);
  const { failed } = JSON.parse(out) as { failed: { path: string; error: { message: string } }[] };
  assert.deepEqual(
    failed.map(({ path }) => path).toSorted(),
    ["huge", "large", "link", "small"].map((name) => `/past pipes/${name}`),
  );
  for (const { error } of failed) assert.match(error.message, /is neither a file nor a folder/);
  for (const name of names) assert.ok(statSync(join(there, name)).isFIFO());
  assert.equal(readFileSync(join(there, "other"), "utf8"), "other");
});

test("a tree with odd names, empty files and folders, and every size at the edges comes back the same", async () => {
  const tree = join(client.folder, "tree");
  mkdirSync(join(tree, "empty folder", "deeper"), { recursive: true });
  mkdirSync(join(tree, "日本語", "ünïcödé 👍"), { recursive: true });
  for (const size of [
    0, 1, 65_535, 65_536, 65_537, 262_144, 262_145, 3_999_999, 4_000_000, 4_000_001, 9_000_000,
  ]) {
    writeFileSync(join(tree, `size-${size}`), randomBytes(size));
  }
  const odd = [
    " leading",
    "trailing ",
    "-rf",
    "a'b\"c$d`e",
    "back\\slash",
    "semi;colon",
    "*?[x]",
    "#hash",
    "~",
    "a@b.c:d",
    "…",
  ];
  for (const name of odd) writeFileSync(join(tree, "日本語", name), name);
  writeFileSync(join(tree, "日本語", "ünïcödé 👍", "x".repeat(255)), "longest name");
  for (let at = 0; at < 300; at++) writeFileSync(join(tree, "empty folder", `many-${at}`), String(at));
  utimesSync(join(tree, "size-1"), 1_000_000_000, 1_234_567_890.123);
  await put("-r", tree, "/round");
  await get("-r", "/round", join(client.folder, "back"));
  assertSameTree(tree, join(client.folder, "back"));
  assert.equal(Math.trunc(statSync(join(client.folder, "back", "size-1")).mtimeMs), 1_234_567_890_123);
  assert.deepEqual(
    readdirSync(join(client.folder, "back"), { recursive: true }).filter((name) =>
      String(name).includes(".part"),
    ),
    [],
  );
});

test("put again replaces what is there, with its new time of change, and quota counts it once", async () => {
  const file = join(client.folder, "twice");
  writeFileSync(file, "first");
  utimesSync(file, 1, 1_000);
  await put(file, "/twice");
  writeFileSync(file, "second, longer");
  utimesSync(file, 1, 2_000);
  await put(file, "/twice");
  assert.equal(await ok(import("./cat-command.ts"), ["/twice"]), "second, longer");
  const stat = JSON.parse(await ok(import("./stat-command.ts"), ["--json", "/twice"])) as Record<
    string,
    unknown
  >;
  assert.equal(stat["mtime_ms"], 2_000_000);
  assert.equal(stat["size"], 14);
});

test("put into a folder, to a new name, of several, and to what is no folder", async () => {
  const [a, b] = ["a", "b"].map((name) => join(client.folder, name)) as [string, string];
  writeFileSync(a, "A");
  writeFileSync(b, "B");
  await ok(import("./mkdir-command.ts"), ["/into"]);
  await put(a, "/into");
  await put(a, "/into/renamed");
  await put(a, b, "/into/");
  assert.equal(await ok(import("./ls-command.ts"), ["/into"]), "a\nb\nrenamed\n");
  assert.equal((await run(import("./put-command.ts"), [a, b, "/into/a"])).code, 1);
  assert.equal((await run(import("./put-command.ts"), [a, "/missing/"])).code, 1);
  assert.equal((await run(import("./put-command.ts"), [a, "/missing/x"])).code, 3);
  assert.equal((await run(import("./put-command.ts"), [join(client.folder, "nothing")])).code, 3);
});

test("links that leave the tree are named and left out, the rest is stored, exit code 1 (D13)", async () => {
  const tree = join(client.folder, "links");
  mkdirSync(tree);
  writeFileSync(join(tree, "data"), "data");
  symlinkSync("data", join(tree, "inside"));
  symlinkSync("/etc/hostname", join(tree, "outside"));
  const result = await run(import("./put-command.ts"), ["-q", "-r", tree, "/links"]);
  assert.equal(result.code, 1);
  assert.match(result.err, /outside: skipped, symbolic link that leads out/);
  assert.equal(await ok(import("./ls-command.ts"), ["/links"]), "data\ninside\n");
  assert.equal(await ok(import("./cat-command.ts"), ["/links/inside"]), "data");
});

test("ls pages through 1,500 entries; cd, pwd and relative paths follow each other", async () => {
  const tree = join(client.folder, "wide");
  mkdirSync(tree);
  for (let at = 0; at < 1_500; at++) writeFileSync(join(tree, `f${String(at).padStart(4, "0")}`), "");
  await put(tree, "/wide");
  const names = (await ok(import("./ls-command.ts"), ["/wide"])).trim().split("\n");
  assert.equal(names.length, 1_500);
  assert.deepEqual([names[0], names[1_499]], ["f0000", "f1499"]);
  await ok(import("./cd-command.ts"), ["wide"]);
  assert.equal(await ok(import("./pwd-command.ts"), []), "/wide\n");
  assert.equal((await ok(import("./ls-command.ts"), ["--json"])).split('"name"').length, 1_501);
  assert.equal((await run(import("./cd-command.ts"), ["f0000"])).code, 1);
  await ok(import("./cd-command.ts"), ["-"]);
  assert.equal(await ok(import("./pwd-command.ts"), []), "/\n");
});

test("write, cat with offset, mkdir -p, mv, rm", async () => {
  await ok(import("./mkdir-command.ts"), ["-p", "/made/of/many"]);
  await ok(import("./mkdir-command.ts"), ["-p", "/made/of/many"]);
  assert.equal((await run(import("./mkdir-command.ts"), ["/made/of"])).code, 1);
  assert.equal((await run(import("./mkdir-command.ts"), ["/no/such"])).code, 3);
  const large = randomBytes(9_000_001);
  await ok(import("./write-command.ts"), ["/made/stream"], { stdin: large });
  const stat = JSON.parse(await ok(import("./stat-command.ts"), ["--json", "/made/stream"])) as Record<
    string,
    unknown
  >;
  assert.equal(stat["size"], 9_000_001);
  await ok(import("./write-command.ts"), ["/made/text"], { stdin: "hello world" });
  assert.equal((await run(import("./write-command.ts"), ["--new", "/made/text"], { stdin: "x" })).code, 1);
  await ok(import("./write-command.ts"), ["--offset", "6", "/made/text"], { stdin: "grove" });
  assert.equal(await ok(import("./cat-command.ts"), ["/made/text"]), "hello grove");
  assert.equal(await ok(import("./cat-command.ts"), ["--offset", "6", "--length", "3", "/made/text"]), "gro");
  await ok(import("./write-command.ts"), ["/made/empty"], { stdin: "" });
  assert.equal(await ok(import("./cat-command.ts"), ["/made/empty"]), "");
  await ok(import("./mv-command.ts"), ["/made/text", "/made/of/"]);
  assert.equal((await run(import("./mv-command.ts"), ["/made/empty", "/made/of/text"])).code, 1);
  await ok(import("./mv-command.ts"), ["--on-conflict", "keep-both", "/made/empty", "/made/of/text"]);
  assert.equal(await ok(import("./ls-command.ts"), ["/made/of"]), "many/\ntext\ntext (2)\n");
  assert.equal((await run(import("./rm-command.ts"), ["--permanent", "/made"])).code, 1);
  await ok(import("./rm-command.ts"), ["-r", "--permanent", "--yes", "/made"]);
  assert.equal((await run(import("./stat-command.ts"), ["/made"])).code, 3);
  assert.equal((await run(import("./rm-command.ts"), ["--permanent", "/made"])).code, 3);
  await ok(import("./rm-command.ts"), ["--permanent", "--force", "/made"]);
});

test("over the quota: exit code 5, the numbers in the sentence, and the files that fit are there (D1, D24)", async () => {
  const env = client.env;
  client.env = { ...env, GROVE_CONFIG_DIR: join(client.folder, "carol") };
  try {
    await ok(import("./login-command.ts"), ["--mock", "carol@example.com", "--fileserver", server.address]);
    await ok(import("./quota-command.ts"), ["set", "carol@example.com", "1MiB", "--admin-password-stdin"], {
      stdin: "correct horse\n",
    });
    const tree = join(client.folder, "too-much");
    mkdirSync(tree);
    writeFileSync(join(tree, "fits"), randomBytes(600_000));
    writeFileSync(join(tree, "too large"), randomBytes(5_000_000));
    const result = await run(import("./put-command.ts"), ["-q", tree, "/tree"]);
    assert.equal(result.code, 5, result.err);
    assert.match(
      result.err,
      /too large: The quota of carol@example\.com is 1 MiB, .* in files.*; this needs .* more: storage quota exceeded/,
    );
    assert.equal(await ok(import("./ls-command.ts"), ["/tree"]), "fits\n");
    const quota = JSON.parse(await ok(import("./quota-command.ts"), ["--json"])) as Record<string, unknown>;
    assert.equal(quota["used_bytes"], 600_000);
    const json = await run(import("./write-command.ts"), ["--json", "/x"], { stdin: randomBytes(600_000) });
    assert.equal(json.code, 5);
    const { error } = JSON.parse(json.err) as { error: { code: string; metadata: Record<string, string> } };
    assert.equal(error.code, "QUOTA_EXCEEDED");
    assert.equal(error.metadata["quota"], "1048576");
  } finally {
    client.env = env;
  }
});

test("another user's root cannot be listed: exit code 4, and nothing is learnt of what is there (D1, D24)", async () => {
  await ok(import("./mkdir-command.ts"), ["/seen"]);
  assert.equal((await run(import("./ls-command.ts"), ["alice@example.com:/seen"])).code, 0);
  assert.equal((await run(import("./ls-command.ts"), ["alice@example.com:/nix"])).code, 3);
  const env = client.env;
  client.env = { ...env, GROVE_CONFIG_DIR: join(client.folder, "mallory") };
  await ok(import("./login-command.ts"), ["--mock", "mallory@example.com", "--fileserver", server.address]);
  const there = await run(import("./ls-command.ts"), ["alice@example.com:/seen"]);
  const missing = await run(import("./ls-command.ts"), ["alice@example.com:/nix"]);
  client.env = env;
  assert.deepEqual([there.code, missing.code], [4, 4]);
  assert.equal(there.err.replace("/seen", ""), missing.err.replace("/nix", ""));
});

test("the shell runs piped lines over one connection; its exit code is that of the last verb that failed", async () => {
  const script =
    'mkdir sh\ncd sh\npwd\nls nothing\n# a comment\ncd ..\nrm -r --permanent -y "sh"\nexit\nls\n';
  const result = await run(import("./shell-command.ts"), [], { stdin: script });
  assert.equal(result.out, "/sh\n");
  assert.match(result.err, /^grove ls: \/sh\/nothing: /);
  assert.equal(result.code, 3);
  assert.equal((await run(import("./shell-command.ts"), [], { stdin: "pwd\nnonsense\n" })).code, 1);
});

test("./grove as people start it: a pipe that ends early, help, wrong words", async () => {
  const env = client.env;
  assert.equal((await runGrove(["pwd"], env)).out, "/\n");
  const help = await runGrove(["put", "--help"], env);
  assert.equal(help.code, 0);
  assert.match(help.out, /Examples:\n {2}grove put report\.pdf/);
  assert.equal((await runGrove(["ls", "--no-such-option"], env)).code, 1);
  assert.equal((await runGrove(["ls", "/nothing"], env)).code, 3);
  const scripts = await runGrove(["completion", "bash"], env);
  execFileSync("bash", ["-n"], { input: scripts.out });
  assert.match(scripts.out, /"put "\*\) options="[^"]*--recursive/);
  assert.equal((await runGrove(["completion", "paths", "/wi"], env)).out, "/wide/\n");
});

test("an interrupted get leaves no half file under the name, only its part, which the next get takes up; exit code 130", async () => {
  const file = join(client.folder, "interrupted");
  const source = join(client.folder, "source");
  writeFileSync(source, Buffer.alloc(200_000_000));
  await put(source, "/large");
  const child = spawnGrove(["get", "/large", file], client.env);
  // The listener comes first, so that the event is not missed.
  const ended = once(child, "exit");
  const folder = client.folder;
  const isBegun = (): boolean => readdirSync(folder).some((name) => name.includes(".part"));
  while (!isBegun() && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 5));
  child.kill("SIGINT");
  const [code] = (await ended) as [number | null];
  if (code !== 0) {
    assert.equal(code, 130);
    assert.equal(existsSync(file), false);
  }
  await get("/large", file);
  assert.equal(statSync(file).size, 200_000_000);
  assert.equal(isBegun(), false);
});

test("an upload outlives kill -9 of the server: it goes on when the server is back, and all of it is there", async () => {
  const tree = join(client.folder, "survivor");
  mkdirSync(tree);
  for (let at = 0; at < 600; at++) writeFileSync(join(tree, `f${at}`), randomBytes(3_000));
  writeFileSync(join(tree, "large"), randomBytes(30_000_000));
  // A slow machine takes long to start a server.
  const patient = { ...client.env, GROVE_RETRY_SECONDS: "60" };
  const child = spawnGrove(["put", "-r", tree, "/survivor"], patient);
  let err = "";
  child.stderr?.on("data", (piece: Buffer) => {
    err += piece.toString();
  });
  const ended = once(child, "exit");
  const stored = async (): Promise<number> =>
    (await run(import("./ls-command.ts"), ["/survivor"])).out.split("\n").length;
  while ((await stored()) < 20 && child.exitCode === null)
    await new Promise((resolve) => setTimeout(resolve, 10));
  await server.kill("SIGKILL");
  server = await startFileServer(client.folder, port);
  const [code] = (await ended) as [number | null];
  assert.equal(code, 0, err);
  await get("/survivor", join(client.folder, "survived"));
  assertSameTree(tree, join(client.folder, "survived"));
  assert.equal(readFileSync(join(client.folder, "survived", "large")).length, 30_000_000);
});

test("quiet means silent when all goes well, and not when something fails", async () => {
  const file = join(client.folder, "quiet.txt");
  writeFileSync(file, "x");
  const fine = await run(import("./put-command.ts"), ["-q", file, "/"]);
  assert.deepEqual([fine.code, fine.out, fine.err], [0, "", ""]);
  const told = await run(import("./put-command.ts"), [file, "/"]);
  assert.match(told.err, /uploaded 1 file/);
  assert.notEqual((await run(import("./put-command.ts"), ["-q", join(client.folder, "none"), "/"])).err, "");
});

test("a folder whose parents are missing is refused with the flag that makes them", async () => {
  const refused = await run(import("./mkdir-command.ts"), ["/no/such/parent"]);
  assert.equal(refused.code, 3);
  assert.match(refused.err, /Add -p to make the folders above it too\./);
  const json = await run(import("./mkdir-command.ts"), ["/no/such/parent", "--json"]);
  const { error } = JSON.parse(json.err) as { error: Record<string, unknown> };
  assert.deepEqual(
    [error["code"], error["reason"], error["hint"]],
    ["NO_SUCH_PATH", "NO_SUCH_PATH", "Add -p to make the folders above it too."],
  );
});

test("times are local with their zone for people, RFC 3339 in UTC for programs", async () => {
  await ok(import("./mkdir-command.ts"), ["/timed"]);
  assert.match(
    await ok(import("./stat-command.ts"), ["/timed"]),
    /modified {5}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d\n/,
  );
  const json = JSON.parse(await ok(import("./stat-command.ts"), ["/timed", "--json"])) as Record<
    string,
    string
  >;
  for (const time of [json["mtime"], json["ctime"]]) assert.match(time ?? "", /^\d{4}-.*T.*Z$/);
});
