// Tests that the npm package, unpacked as a global one, runs with its own dependencies alone.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { scratchFolder } from "#testing/scratch-folder.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

let scratch: string;
let installed: string;
let manifest: Manifest;

function run(
  command: string,
  words: readonly string[],
  cwd: string,
): { status: number | null; output: string } {
  // Without npm's and the developer's own settings, as in the shell of a new user.
  const env = { PATH: process.env["PATH"], HOME: scratch };
  const { status, stdout, stderr } = spawnSync(command, words, {
    cwd,
    encoding: "utf8",
    env,
    timeout: 100_000,
  });
  return { status, output: stdout + stderr };
}

const grove = (...words: string[]): { status: number | null; output: string } =>
  run(join(scratch, "a prefix/bin/grove"), words, scratch);

before(async () => {
  scratch = scratchFolder("grove-install-");
  manifest = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as Manifest;
  // Packing builds, and other tests use what lies in this clone's dist/ meanwhile.
  const clone = join(scratch, "clone");
  await cp(ROOT, clone, {
    recursive: true,
    filter: (path) => !/^(?:node_modules|dist|coverage|grove-data|\.git|\.cache)$/.test(relative(ROOT, path)),
  });
  await symlink(join(ROOT, "node_modules"), join(clone, "node_modules"));
  const packed = run("npm", ["pack", "--pack-destination", scratch], clone);
  assert.equal(packed.status, 0, packed.output);
  installed = join(scratch, "a prefix/lib/node_modules/grove");
  await mkdir(join(installed, "node_modules"), { recursive: true });
  await mkdir(join(scratch, "a prefix/bin"));
  const tarball = join(scratch, `grove-${manifest.version}.tgz`);
  const unpacked = run("tar", ["-xzf", tarball, "--strip-components=1", "-C", installed], scratch);
  assert.equal(unpacked.status, 0, unpacked.output);
  // Only what the package declares: an import of a development package must fail here.
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
    const source = join(ROOT, "node_modules", name);
    if (!existsSync(source)) continue;
    await mkdir(dirname(join(installed, "node_modules", name)), { recursive: true });
    await symlink(source, join(installed, "node_modules", name));
  }
  await symlink("../lib/node_modules/grove/grove", join(scratch, "a prefix/bin/grove"));
});

test("the package holds the program as JavaScript, its documents, and neither sources nor tests", async () => {
  const top = await readdir(installed);
  for (const name of ["LICENSE", "README.md", "dist", "docs", "grove", "package.json", "proto"]) {
    assert.ok(top.includes(name), name);
  }
  assert.equal(top.includes("src"), false);
  const files = await readdir(join(installed, "dist"), { recursive: true });
  assert.ok(files.includes(join("web", "index.html")), "the console's pages");
  assert.deepEqual(
    files.filter((path) => /\.ts$|\.test\.|^testing\b/.test(path)),
    [],
  );
});

test("the installed command prints its help and version", () => {
  const help = grove("--help");
  assert.match(help.output, /Usage: grove COMMAND/);
  assert.equal(help.status, 0, help.output);
  assert.match(grove("--version").output, new RegExp(`^grove ${manifest.version} `));
});

test("every command of the installed package explains itself, so all that it imports is there", () => {
  const names = [...grove("--help").output.matchAll(/^ {2}([a-z]+) {2}/gm)].flatMap(
    (match) => match[1] ?? [],
  );
  assert.ok(names.length > 20, names.join());
  // What the launcher's entry file calls: one process loads the files of all of them.
  const script = `
    const { run } = await import(${JSON.stringify(join(installed, "dist/bin/run.js"))});
    const { COMMAND_GROUPS } = await import(${JSON.stringify(join(installed, "dist/bin/commands.js"))});
    for (const name of ${JSON.stringify(names)}) {
      process.stdout.write("command " + name + "\\n");
      process.stdout.write("status " + (await run([name, "--help"], COMMAND_GROUPS)) + "\\n");
    }`;
  const { status, output } = run(process.execPath, ["--input-type=module", "-e", script], scratch);
  assert.equal(status, 0, output);
  const said = output.split(/^command /m).slice(1);
  assert.equal(said.length, names.length, output);
  for (const [index, name] of names.entries()) {
    const words = said[index] ?? "";
    assert.match(words, new RegExp(`^${name}\nUsage: grove ${name}`));
    assert.match(words, /^status 0\n/m);
  }
});
