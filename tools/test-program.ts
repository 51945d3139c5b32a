// Bundles the program for a test run, whose hundreds of processes load few files instead of hundreds each.
import { createHash } from "node:crypto";
import {
  copyFile,
  glob,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { basename, join } from "node:path";
import { commitOfClone } from "#os/git-commit.ts";

/** Modules that are loaded by their file's name, beside whatever loads them. */
const LOADED_BY_NAME = /^devcluster\/(?:exit-with-parent|identity-provider)\.ts$/;
/** Modules that threads begin with, loaded by their file's name as well. */
const OF_THREADS = /-worker\.ts$/;
/** Modules of so many commands lie in one chunk: opening a file costs more than functions without a call. */
const COMMON_FROM = 12;
/** What only calls need has a chunk of its own: commands on folders do without it. */
const OF_CALLS = /\/src\/(?:wire|client\/(?:connection|signin))\/|\/node_modules\/@bufbuild\//;
/** What packages do, and what one chunk for many commands brings about. */
const EXPECTED_WARNINGS = /^(?:EVAL|INEFFECTIVE_DYNAMIC_IMPORT)$/;
/**
 * Flags of the launcher for loads that last. With them V8 refuses what Node has compiled of its own modules:
 * each start would take 30 to 60 ms longer.
 */
const LASTING_LOADS =
  / ?--(?:initial-old-space-size=64|no-allocation-site-pretenuring|max-old-space-size=512)/g;
/** Longer than any test run. */
const KEPT_MS = 24 * 3_600_000;

/**
 * Makes the folder unless it is there from an earlier run of the same sources: two launchers, and in `dist/bin`
 * the entry with all modules beside it, so that each finds its workers.
 * @returns the folder, for GROVE_TEST_PROGRAM
 */
export async function bundleProgram(root: string): Promise<string> {
  const sources = (await Array.fromAsync(glob("src/**/*.ts", { cwd: root })))
    .filter((path) => !/\.(?:test|fixture)\.ts$|^src\/testing\//.test(path))
    .toSorted();
  const commit = commitOfClone(root);
  const programs = join(root, ".cache/programs");
  const folder = join(programs, await hashOf(root, sources, commit));
  const program = join(folder, "program");
  const isThere = await readFile(join(program, "grove")).then(
    () => true,
    () => false,
  );
  if (isThere) return program;
  await removeOld(programs);
  await mkdir(folder, { recursive: true });
  const made = await mkdtemp(join(folder, "made-"));
  const byName = sources.filter((path) => LOADED_BY_NAME.test(path.slice("src/".length)));
  await writeBundle(root, { entries: ["src/bin/grove.ts", ...byName], folder: join(made, "dist/bin") });
  // A thread shares no module with others. In chunks of commands it would load what only these need.
  const ofThreads = sources.filter((path) => OF_THREADS.test(path));
  await writeBundle(root, { entries: ofThreads, folder: join(made, "dist/bin") });
  if (commit !== null) await writeFile(join(made, "dist/git-commit"), `${commit}\n`);
  await copyFile(join(root, "package.json"), join(made, "package.json"));
  // Where the console and doors look for their pages.
  await symlink(join(root, "dist/web"), join(made, "web"));
  await symlink(join(root, "dist/files"), join(made, "files"));
  // Where 'grove init' looks for units.
  await symlink(join(root, "packaging"), join(made, "packaging"));
  const launcher = await readFile(join(root, "grove"), "utf8");
  await writeFile(join(made, "grove"), withoutLastingLoads(launcher), { mode: 0o755 });
  await writeFile(join(made, "grove-of-users"), launcher, { mode: 0o755 });
  // Another run may have been sooner.
  await rename(made, program).catch(() => rm(made, { recursive: true }));
  return program;
}

async function writeBundle(
  root: string,
  { entries, folder }: { readonly entries: readonly string[]; readonly folder: string },
): Promise<void> {
  // Loaded only here: most runs find their bundle made.
  const { rolldown } = await import("rolldown");
  const bundle = await rolldown({
    cwd: root,
    input: Object.fromEntries(entries.map((path) => [basename(path, ".ts"), path])),
    platform: "node",
    external: /^node:/,
    transform: { define: { BUILT_WITH_IDP_AUTH: "true" } },
    onLog(level, log) {
      if (level === "warn" && !EXPECTED_WARNINGS.test(log.code ?? "")) throw new Error(log.message);
    },
  });
  await bundle.write({
    dir: folder,
    format: "esm",
    chunkFileNames: "[name]-[hash].js",
    codeSplitting: {
      groups: [
        // Taken first, since a group takes what its modules import as well.
        { name: "common", test: (path) => !OF_CALLS.test(path), minShareCount: COMMON_FROM, priority: 1 },
        { name: "calls", minShareCount: COMMON_FROM },
      ],
    },
  });
  await bundle.close();
}

/** The launcher without flags that only loads of minutes show. */
export function withoutLastingLoads(launcher: string): string {
  return launcher.replaceAll(LASTING_LOADS, "");
}

/** Removes bundles of other sources that no run can be using any more. */
async function removeOld(programs: string): Promise<void> {
  for (const name of await readdir(programs).catch(() => [])) {
    const path = join(programs, name);
    if (Date.now() - (await stat(path)).mtimeMs > KEPT_MS) await rm(path, { recursive: true, force: true });
  }
}

async function hashOf(root: string, sources: readonly string[], commit: string | null): Promise<string> {
  const hash = createHash("sha256").update(`${commit}`);
  for (const path of [...sources, "grove", "package.json", "package-lock.json", "tools/test-program.ts"])
    hash.update(`\0${path}\0`).update(await readFile(join(root, path)));
  return hash.digest("hex").slice(0, 16);
}
