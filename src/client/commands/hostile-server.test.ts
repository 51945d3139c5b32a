// Tests of `get` and `ls` against a malicious server: no escape, no wrong file, no raw output (B-09).
import assert from "node:assert/strict";
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { crc32 } from "node:zlib";
import { terminalJson } from "#client/terminal/terminal-text.ts";
import { makeTestClient, type TestClient, type VerbResult } from "./client.fixture.ts";
import {
  type AttrInit,
  type FakeHandlers,
  type FakeServer,
  fileAttr,
  folderAttr,
  startFakeServer,
} from "./fake-server.fixture.ts";

const CONTENT = Buffer.from("the content");
/** Large enough to come as a stream. */
const LARGE = Buffer.alloc(700_000, "x");

let client: TestClient;
let server: FakeServer;
/** The server's handlers in the current test. */
let behaviour: FakeHandlers = {};
let targets = 0;

before(async () => {
  client = await makeTestClient();
  const relay = new Proxy<FakeHandlers>(
    {},
    {
      get:
        (_target, name) =>
        (...args: unknown[]) => {
          const handler = behaviour[name as keyof FakeHandlers] as
            | ((...all: unknown[]) => unknown)
            | undefined;
          if (handler === undefined) throw new Error(`not expected: ${String(name)}`);
          return handler(...args);
        },
    },
  );
  server = await startFakeServer({
    getAttr: relay.getAttr!,
    listDir: relay.listDir!,
    readFile: relay.readFile!,
    downloadFile: relay.downloadFile!,
  });
  const signedIn = await client.run(import("./login-command.ts"), [
    "--mock",
    "a@b.c",
    "--fileserver",
    server.address,
  ]);
  assert.equal(signedIn.code, 0, signedIn.err);
});

after(async () => {
  await server.stop();
  await client.stop();
});

/** A tree with the given entries in its root, each file with CONTENT unless the handlers override it. */
function tree(entries: readonly AttrInit[], over: FakeHandlers = {}): FakeHandlers {
  return {
    getAttr: () => folderAttr("tree"),
    listDir: ({ path }) => ({ entries: path === "/tree" ? [...entries] : [] }),
    readFile: ({ path }) => ({ data: CONTENT, attr: fileAttr(path.slice(1), CONTENT) }),
    ...over,
  };
}

async function get(
  handlers: FakeHandlers,
  words: readonly string[] = ["/tree"],
): Promise<{
  result: VerbResult;
  target: string;
}> {
  behaviour = handlers;
  const target = join(client.folder, `target${++targets}`, "inside");
  mkdirSync(target, { recursive: true });
  const result = await client.run(import("./get-command.ts"), [...words, join(target, "out")]);
  return { result, target };
}

/** Every path below a folder. */
function everything(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

const HOSTILE_NAMES = [
  "../escaped",
  "..",
  ".",
  "/etc/grove-was-here",
  "a/b",
  "nul\u0000byte",
  "esc\u001b[2J\u001b]0;owned\u0007",
  "line\nfeed",
  "\u009b31m",
  "",
  "x".repeat(256),
];

for (const name of HOSTILE_NAMES) {
  test(`the name ${terminalJson(JSON.stringify(name.slice(0, 40)))} is refused, the others arrive (B-09)`, async () => {
    const { result, target } = await get(tree([fileAttr(name, CONTENT), fileAttr("good", CONTENT)]));
    assert.equal(result.code, 1);
    assert.deepEqual(everything(join(target, "..")), ["inside", "inside/out", "inside/out/good"]);
    assert.doesNotMatch(result.err.replaceAll("\n", ""), /[\u0000-\u001f\u007f-\u009f]/u);
    assert.match(result.err, /name that is none/);
  });

  test(`a folder called ${terminalJson(JSON.stringify(name.slice(0, 40)))} is refused (B-09)`, async () => {
    const { result, target } = await get(tree([folderAttr(name), fileAttr("good", CONTENT)]));
    assert.equal(result.code, 1);
    assert.deepEqual(everything(join(target, "..")), ["inside", "inside/out", "inside/out/good"]);
  });
}

test("a symbolic link in the target folder is not followed, for folders and files (B-09)", async () => {
  const outside = join(client.folder, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "victim"), "untouched");
  behaviour = tree([folderAttr("sub"), fileAttr("victim", CONTENT)], {
    getAttr: () => folderAttr("tree"),
    listDir: ({ path }) => ({
      entries:
        path === "/tree" ? [folderAttr("sub"), fileAttr("victim", CONTENT)] : [fileAttr("planted", CONTENT)],
    }),
  });
  // `get` into an existing folder makes "tree" inside it.
  mkdirSync(join(client.folder, "case"));
  symlinkSync(outside, join(client.folder, "case", "tree"));
  const throughLink = await client.run(import("./get-command.ts"), ["/tree", join(client.folder, "case")]);
  assert.notEqual(throughLink.code, 0);
  mkdirSync(join(client.folder, "case2", "tree"), { recursive: true });
  symlinkSync(outside, join(client.folder, "case2", "tree", "sub"));
  symlinkSync(join(outside, "victim"), join(client.folder, "case2", "tree", "victim"));
  const result = await client.run(import("./get-command.ts"), ["/tree", join(client.folder, "case2")]);
  assert.equal(result.code, 1);
  assert.deepEqual(readdirSync(outside), ["victim"]);
  assert.equal(readFileSync(join(outside, "victim"), "utf8"), "untouched");
  const replaced = lstatSync(join(client.folder, "case2", "tree", "victim"));
  assert.ok(replaced.isFile(), "the link itself is replaced by the file");
});

test("the same name twice is one file and one failure", async () => {
  const { result, target } = await get(
    tree([fileAttr("a", CONTENT), fileAttr("a", CONTENT), folderAttr("a")]),
  );
  assert.equal(result.code, 1);
  assert.deepEqual(everything(target), ["out", "out/a"]);
  assert.match(result.err, /same name/);
});

/** Wrong answers about a small file, and the expected messages. */
const SMALL_LIES: Readonly<Record<string, FakeHandlers["readFile"]>> = {
  "a wrong checksum": () => ({ data: CONTENT, attr: fileAttr("f", CONTENT, { crc32: 1 }) }),
  "less than the size": () => ({ data: CONTENT.subarray(1), attr: fileAttr("f", CONTENT) }),
  "more than the size": () => ({ data: Buffer.concat([CONTENT, CONTENT]), attr: fileAttr("f", CONTENT) }),
  "no attributes": () => ({ data: CONTENT }),
  "a folder's attributes": () => ({ data: CONTENT, attr: folderAttr("f") }),
};

for (const [lie, readFile] of Object.entries(SMALL_LIES)) {
  test(`a small file with ${lie} takes no name and leaves nothing`, async () => {
    const { result, target } = await get({ getAttr: () => fileAttr("f", CONTENT), readFile: readFile! }, [
      "/f",
    ]);
    assert.equal(result.code, 1, result.err);
    assert.deepEqual(everything(target), []);
  });
}

type Parts = AsyncGenerator<object>;
const attrPart = (over: AttrInit = {}): object => ({
  part: { case: "attr", value: fileAttr("f", LARGE, over) },
});
const chunkPart = (offset: number, data: Uint8Array, stated = crc32(data)): object => ({
  part: { case: "chunk", value: { offset: BigInt(offset), data, crc32: stated } },
});
const HALF = LARGE.subarray(0, 350_000);

/** Wrong answers in a stream. */
const STREAM_LIES: Readonly<Record<string, () => Parts>> = {
  nothing: async function* () {},
  "a chunk before the attributes": async function* () {
    yield chunkPart(0, LARGE);
  },
  "a chunk with a wrong checksum": async function* () {
    yield attrPart();
    yield chunkPart(0, LARGE, 7);
  },
  "right chunks and a wrong checksum of the whole": async function* () {
    yield attrPart({ crc32: 7 });
    yield chunkPart(0, LARGE);
  },
  "a stream that ends early with OK": async function* () {
    yield attrPart();
    yield chunkPart(0, HALF);
  },
  "more than the size": async function* () {
    yield attrPart();
    yield chunkPart(0, LARGE);
    yield chunkPart(LARGE.length, HALF);
  },
  "a gap between chunks": async function* () {
    yield attrPart();
    yield chunkPart(1, HALF);
  },
  "the same chunk twice": async function* () {
    yield attrPart();
    yield chunkPart(0, HALF);
    yield chunkPart(0, HALF);
  },
  "an empty chunk": async function* () {
    yield attrPart();
    yield chunkPart(0, new Uint8Array());
  },
  "attributes twice": async function* () {
    yield attrPart();
    yield attrPart();
  },
  "an impossible size": async function* () {
    yield attrPart({ size: 2n ** 63n });
  },
};

for (const [lie, downloadFile] of Object.entries(STREAM_LIES)) {
  test(`a large file with ${lie} takes no name and leaves nothing`, async () => {
    const { result, target } = await get(
      { getAttr: () => fileAttr("f", LARGE), downloadFile: downloadFile as never },
      ["/f"],
    );
    assert.equal(result.code, 1, result.err);
    assert.deepEqual(everything(target), []);
  });
}

test("a large file that is right arrives, with its time of change", async () => {
  const honest = async function* (): Parts {
    yield attrPart();
    yield chunkPart(0, HALF);
    yield chunkPart(HALF.length, LARGE.subarray(HALF.length));
  };
  const { result, target } = await get(
    { getAttr: () => fileAttr("f", LARGE), downloadFile: honest as never },
    ["/f"],
  );
  assert.equal(result.code, 0, result.err);
  assert.ok(readFileSync(join(target, "out")).equals(LARGE));
  assert.equal(Math.trunc(lstatSync(join(target, "out")).mtimeMs), 1_700_000_000_123);
});

test("a failed download leaves what was there under that name (atomic)", async () => {
  const target = join(client.folder, "kept");
  writeFileSync(target, "before");
  behaviour = {
    getAttr: () => fileAttr("f", LARGE),
    downloadFile: STREAM_LIES["a stream that ends early with OK"] as never,
  };
  const result = await client.run(import("./get-command.ts"), ["/f", target]);
  assert.equal(result.code, 1);
  assert.equal(readFileSync(target, "utf8"), "before");
});

test("ls prints hostile names as visible escapes, in rows and in JSON (B-09)", async () => {
  const name = "evil\u001b[2J\u202etxt.exe";
  behaviour = { listDir: () => ({ entries: [fileAttr(name, CONTENT, { shared: ["\u001b[0m"] })] }) };
  const rows = await client.run(import("./ls-command.ts"), ["-l"]);
  assert.match(rows.out, /evil\\x1b\[2J\\u\{202e\}txt\.exe/);
  assert.ok(!rows.out.includes("\u001b"));
  const json = await client.run(import("./ls-command.ts"), ["--json"]);
  assert.ok(!json.out.includes("\u001b") && !json.out.includes("\u202e"));
  assert.equal((JSON.parse(json.out) as { entries: { name: string }[] }).entries[0]?.name, name);
});

test("a listing that never ends is given up", async () => {
  behaviour = { listDir: () => ({ entries: [fileAttr("a", CONTENT)], nextPageToken: "again" }) };
  const result = await client.run(import("./ls-command.ts"), []);
  assert.equal(result.code, 1);
  assert.match(result.err, /does not end/);
});

test("cat prints no controls to a terminal unless asked to", async () => {
  const bytes = Buffer.from("red: \u001b[31m");
  const send = async function* (): Parts {
    yield { part: { case: "attr", value: fileAttr("f", bytes) } };
    yield chunkPart(0, bytes);
  };
  behaviour = { downloadFile: send as never };
  const shown = await client.run(import("./cat-command.ts"), ["/f"], { isTty: true });
  assert.equal(shown.code, 1);
  assert.equal(shown.out, "");
  const raw = await client.run(import("./cat-command.ts"), ["--raw", "/f"], { isTty: true });
  assert.equal(raw.out, bytes.toString());
  const piped = await client.run(import("./cat-command.ts"), ["/f"]);
  assert.equal(piped.out, bytes.toString());
});
