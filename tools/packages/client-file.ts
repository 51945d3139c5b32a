// The client as one file: Node with the client's modules inside, for a machine that has nothing else.
import { chmod, copyFile, cp, readFile, rename, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { rolldown } from "rolldown";
import {
  type Architecture,
  installPackages,
  NAMES,
  type PackageWork,
  packageVersion,
  ROOT,
  run,
  strip,
} from "./package-build.ts";
import { withoutLibatomic } from "./without-libatomic.ts";

/** As the launcher has it for the client: see the file `grove`. */
const NODE_FLAGS = [
  "--disable-sigusr1",
  "--max-semi-space-size=8",
  "--no-parallel-scavenge",
  "--initial-old-space-size=64",
];
/** Largest file that is still handed round by mail and memory stick. */
const MAX_BYTES = 130_000_000;

/** Makes the client for one architecture and returns its path. */
export async function clientFile({ architecture, out, scratch, epoch }: PackageWork): Promise<string> {
  const folder = join(scratch, `client-${architecture}`);
  await installPackages(folder, architecture);
  const { npm } = NAMES[architecture];
  const node = join(folder, "node");
  await copyFile(join(folder, `node_modules/node-linux-${npm}/bin/node`), node);
  await strip(node, architecture);
  const crc32 = join(folder, `node_modules/@node-rs/crc32-linux-${npm}-gnu/crc32.linux-${npm}-gnu.node`);
  const made = join(folder, "grove-client");
  await makeClient({ architecture, folder, node, crc32, made });
  const { size } = await stat(made);
  if (size >= MAX_BYTES) throw new Error(`the client has ${size} bytes, and ${MAX_BYTES} is too many`);
  await utimes(made, epoch, epoch);
  const target = join(out, `grove-client_${await packageVersion()}_linux-${architecture}`);
  await cp(made, `${target}.new`, { preserveTimestamps: true });
  await rename(`${target}.new`, target);
  return target;
}

/** Puts the client's modules and one compiled library into a copy of a Node. */
export async function makeClient(files: {
  readonly architecture: Architecture;
  /** For what lies in between. */
  readonly folder: string;
  readonly node: string;
  readonly crc32: string;
  /** The program that is made. */
  readonly made: string;
}): Promise<void> {
  const main = "client.mjs";
  await bundleClient(join(files.folder, main));
  const executable = join(files.folder, "node-alone");
  const program = await readFile(files.node);
  withoutLibatomic(program, files.architecture);
  await writeFile(executable, program, { mode: 0o755 });
  const settings = {
    // The program keeps this path, so that a whole one would make other bytes in every folder.
    main,
    mainFormat: "module",
    executable,
    output: files.made,
    disableExperimentalSEAWarning: true,
    // Code that is compiled ahead fits the machine that compiled it, and one version of V8 alone.
    useCodeCache: false,
    useSnapshot: false,
    execArgv: NODE_FLAGS,
    execArgvExtension: "none",
    assets: { crc32: files.crc32 },
  };
  const path = join(files.folder, "settings.json");
  await writeFile(path, JSON.stringify(settings));
  await run(process.execPath, ["--build-sea", path], files.folder);
  await chmod(files.made, 0o755);
}

async function bundleClient(file: string): Promise<void> {
  const bundle = await rolldown({
    cwd: ROOT,
    input: "src/bin/grove-client.ts",
    platform: "node",
    external: /^node:/,
    transform: { define: { BUILT_WITH_IDP_AUTH: "true" } },
    onLog(level, log) {
      if (level === "warn") throw new Error(log.message);
    },
  });
  await bundle.write({ file, format: "esm", codeSplitting: false });
  await bundle.close();
}
