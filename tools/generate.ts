// Generates protocol code and the picture of the floors; --check lists committed files that differ.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { floorsPicture } from "./floors-picture.ts";
import { ROOMS } from "./rooms.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Each template with the folder that it alone fills. */
const OUTPUTS = [
  { template: "buf.gen.yaml", folder: "src/wire/proto/gen" },
  { template: "buf.gen.grpc.yaml", folder: "src/wire/framing/gen" },
];

const PICTURE = "docs/floors.svg";

/** Runs the generator into a folder with the repository's layout, without network. */
function generateInto(base: string): void {
  for (const { template } of OUTPUTS) {
    const { status } = spawnSync("buf", ["generate", "--template", template, "-o", base], {
      cwd: ROOT,
      stdio: "inherit",
    });
    // The generator has printed the error.
    if (status !== 0) process.exit(1);
  }
}

/** The files below a folder with their text; empty without the folder. */
function contents(folder: string): Map<string, string> {
  if (!existsSync(folder)) return new Map();
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return new Map(
    entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path.slice(folder.length + 1), readFileSync(path, "utf8")]),
  );
}

/** Committed files that differ from the generated ones, or exist on one side only. */
function staleFiles(): string[] {
  const base = mkdtempSync(join(tmpdir(), "grove-generated-"));
  try {
    generateInto(base);
    return OUTPUTS.flatMap(({ folder }) => {
      const committed = contents(join(ROOT, folder));
      const generated = contents(join(base, folder));
      const paths = new Set([...committed.keys(), ...generated.keys()]);
      return [...paths]
        .filter((path) => committed.get(path) !== generated.get(path))
        .map((path) => join(folder, path));
    });
  } finally {
    rmSync(base, { recursive: true });
  }
}

if (process.argv.includes("--check")) {
  const stale = staleFiles();
  const picture = join(ROOT, PICTURE);
  if (!existsSync(picture) || readFileSync(picture, "utf8") !== floorsPicture(ROOMS)) stale.push(PICTURE);
  for (const path of stale) console.log(`${path} is not what is generated`);
  if (stale.length > 0) {
    console.log("Run 'npm run generate' and commit what changes.");
    process.exitCode = 1;
  }
} else {
  for (const { folder } of OUTPUTS) rmSync(join(ROOT, folder), { recursive: true, force: true });
  generateInto(ROOT);
  writeFileSync(join(ROOT, PICTURE), floorsPicture(ROOMS));
}
