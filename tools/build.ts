// Builds dist/, which installed packages run: the same files as src/ as plain JavaScript, one for one.
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { commitOfClone } from "#os/git-commit.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

// Every module keeps its place and its name, and each is an entry: workers are started, and commands
// imported, by paths relative to the file that names them.
const entries = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" }).filter(
  (path) =>
    path.endsWith(".ts") &&
    !/\.(?:test|fixture)\.ts$/.test(path) &&
    !/^testing\/|(?:^|\/)(?:testdata|fixtures)\//.test(path),
);

rmSync(join(ROOT, "dist"), { recursive: true, force: true });
const bundle = await rolldown({
  cwd: ROOT,
  input: Object.fromEntries(entries.map((path) => [path.replace(/\.ts$/, ""), `src/${path}`])),
  platform: "node",
  // Packages stay outside: npm installs them beside us, and their files may look for each other.
  external: /^(?!#)[^./]/,
  treeshake: false,
  // What rolldown only warns of, an import that leads nowhere above all, would fail on somebody's machine.
  onLog(level, log) {
    if (level === "warn") throw new Error(log.message);
  },
});
await bundle.write({
  dir: "dist",
  format: "esm",
  preserveModules: true,
  preserveModulesRoot: "src",
  entryFileNames: "[name].js",
  sourcemap: false,
});
await bundle.close();
// An installed package lies in no clone: what it was made from is written down.
const commit = commitOfClone(ROOT);
if (commit !== null) writeFileSync(join(ROOT, "dist", "git-commit"), `${commit}\n`);
