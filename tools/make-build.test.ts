// Tests `make build` on nodes: changed sources decide whether the console's pages are rebuilt (spec 4.7).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** A stub of npm that records its calls and leaves npm's files. */
const NPM = `#!/bin/sh
echo "$*" >>"$NPM_LOG"
case $1 in
  ci) mkdir -p node_modules && : >node_modules/.package-lock.json ;;
  run) [ -z "$NPM_FAILS" ] || exit 1; rm -rf dist/web && mkdir -p dist/web && cat web/page.tsx >dist/web/index.html ;;
esac
`;
const skip = spawnSync("make", ["--version"]).error === undefined ? false : "make is needed";
let folder: string;
const at = (path: string): string => join(folder, path);

before(() => {
  folder = mkdtempSync(join(tmpdir(), "grove-make-"));
  copyFileSync(join(ROOT, "Makefile"), at("Makefile"));
  for (const path of ["bin", "web", "src/base", "src/wire/webapi", "src/storage"])
    mkdirSync(at(path), { recursive: true });
  writeFileSync(at("bin/npm"), NPM, { mode: 0o755 });
  for (const path of [
    "package.json",
    "package-lock.json",
    "web/page.tsx",
    "src/base/words.ts",
    "src/wire/webapi/alert.ts",
    "src/storage/rows.ts",
  ])
    writeFileSync(at(path), `first of ${path}\n`);
});
after(() => rmSync(folder, { recursive: true }));

/** The npm calls of one `make build`. */
function build(env: Readonly<Record<string, string>> = {}): {
  asked: string[];
  status: number | null;
  stdout: string;
} {
  writeFileSync(at("npm.log"), "");
  const { status, stdout } = spawnSync("make", ["build"], {
    cwd: folder,
    encoding: "utf8",
    env: {
      ...process.env,
      MAKEFLAGS: "",
      PATH: `${at("bin")}:${process.env["PATH"]}`,
      NPM_LOG: at("npm.log"),
      ...env,
    },
  });
  return { asked: readFileSync(at("npm.log"), "utf8").split("\n").filter(Boolean), status, stdout };
}

test("pages are built when a source of theirs is another than before, and only then", { skip }, () => {
  assert.deepEqual(build().asked, ["ci --ignore-scripts", "run build:web"]);
  const again = build();
  assert.deepEqual(again.asked, []);
  assert.match(again.stdout, /The pages are those of these sources already/);
  const later = new Date(Date.now() + 60_000);
  utimesSync(at("web/page.tsx"), later, later);
  assert.deepEqual(build().asked, [], "touched is not changed");
  for (const path of ["web/page.tsx", "src/base/words.ts", "src/wire/webapi/alert.ts"]) {
    appendFileSync(at(path), "more\n");
    assert.deepEqual(build().asked, ["run build:web"], path);
    assert.deepEqual(build().asked, []);
  }
  assert.match(readFileSync(at("dist/web/index.html"), "utf8"), /more/);
  appendFileSync(at("src/storage/rows.ts"), "more\n");
  assert.deepEqual(build().asked, [], "what pages do not read");
  writeFileSync(at("web/page.tsx"), "first of web/page.tsx\n");
  assert.deepEqual(build().asked, ["run build:web"], "back to what it was");
  rmSync(at("dist"), { recursive: true });
  assert.deepEqual(build().asked, ["run build:web"], "the pages are gone");
});

test("pages that could not be built are an error, and are built with the next try", { skip }, () => {
  build();
  appendFileSync(at("web/page.tsx"), "broken\n");
  assert.notEqual(build({ NPM_FAILS: "1" }).status, 0);
  assert.deepEqual(build().asked, ["run build:web"]);
  const later = new Date(Date.now() + 120_000);
  appendFileSync(at("package-lock.json"), "more\n");
  utimesSync(at("package-lock.json"), later, later);
  assert.deepEqual(build().asked, ["ci --ignore-scripts", "run build:web"], "other packages");
});
