// Shows what the program answers before any command runs, as a user sees it: words, streams and exit codes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { VERSION } from "#base/version.ts";
import { COMMANDS } from "./commands.ts";

const ENTRY = fileURLToPath(new URL("./grove.ts", import.meta.url));

function grove(...words: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [ENTRY, ...words], { encoding: "utf8", timeout: 30_000 });
}

test("help and version are printed to standard output with exit code 0", () => {
  for (const words of [[], ["--help"], ["-h"], ["-help"], ["help"]]) {
    const { status, stdout, stderr } = grove(...words);
    assert.match(stdout, /^Grove: .*\n\nUsage: grove COMMAND/);
    assert.deepEqual([status, stderr], [0, ""]);
  }
  for (const word of ["--version", "-version", "-V", "version"]) {
    const { status, stdout } = grove(word);
    assert.equal(stdout, `grove ${VERSION} (Node ${process.versions.node})\n`);
    assert.equal(status, 0);
  }
});

test("an unknown command is a usage error, exit code 1, with the one that was meant (D24)", () => {
  const near = grove("fileservr", "-data", "x");
  assert.equal(near.stderr, `grove: there is no command "fileservr"; did you mean 'grove fileserver'?\n`);
  assert.deepEqual([near.status, near.stdout], [1, ""]);
  const far = grove("\u001b[31mxyzzy");
  assert.equal(far.stderr, `grove: there is no command "\\u001b[31mxyzzy"; 'grove --help' lists them all\n`);
  assert.equal(far.status, 1);
});

test("help reads no command's module and not the parser either", () => {
  const { stdout } = spawnSync(
    process.execPath,
    [
      "--input-type=module",
      "--eval",
      `import { registerHooks } from "node:module";
       const seen = [];
       registerHooks({ load: (url, context, next) => (seen.push(url), next(url, context)) });
       process.argv = [process.argv[0], "grove", "--help"];
       await import(${JSON.stringify(ENTRY)});
       console.log("\\n" + JSON.stringify(seen));`,
    ],
    { encoding: "utf8", timeout: 30_000 },
  );
  const seen = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "[]") as string[];
  const names = seen.flatMap((url) => (url.startsWith("file:") ? (url.split("/").at(-1) ?? []) : []));
  assert.deepEqual(names.toSorted(), ["commands.ts", "grove.ts", "help.ts", "run.ts"]);
});

for (const { name, load } of COMMANDS) {
  test(`grove ${name}: its module answers with a parser of that name, described`, async () => {
    const parser = (await load()).command();
    assert.equal(parser.name(), name);
    assert.match(parser.description(), /\w/);
  });
}
