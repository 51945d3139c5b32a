// What all packages share: architectures, the moment that files carry, and the packages of npm for a machine.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, copyFile, mkdir, readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Debian's names of what packages are made for. */
export const ARCHITECTURES = ["amd64", "arm64"] as const;

/** One of them. */
export type Architecture = (typeof ARCHITECTURES)[number];

/** True for one of them. */
export function isArchitecture(word: string): word is Architecture {
  return (ARCHITECTURES as readonly string[]).includes(word);
}

/** How others name an architecture. */
export const NAMES: Readonly<Record<Architecture, { readonly npm: string; readonly gnu: string }>> = {
  amd64: { npm: "x64", gnu: "x86_64" },
  arm64: { npm: "arm64", gnu: "aarch64" },
};

/** One package that is to be made. */
export interface PackageWork {
  readonly architecture: Architecture;
  /** Where it goes. */
  readonly out: string;
  /** A folder for what lies in between; removed afterwards. */
  readonly scratch: string;
  /** Unix seconds that all its files carry. */
  readonly epoch: number;
}

/** The program's version. */
export async function packageVersion(): Promise<string> {
  return (JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as { version: string }).version;
}

/** Unix seconds of SOURCE_DATE_EPOCH, else of the commit, so that the same sources give the same bytes. */
export async function sourceTime(): Promise<number> {
  const given = process.env["SOURCE_DATE_EPOCH"];
  const seconds = Number(given ?? (await run("git", ["log", "-1", "--format=%ct"], ROOT)));
  if (!Number.isSafeInteger(seconds) || seconds <= 0) {
    throw new Error("SOURCE_DATE_EPOCH has to be a number of seconds since 1970");
  }
  return seconds;
}

/** Runs a command and returns its output. Throws with what it said where it fails. */
export async function run(
  command: string,
  words: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const child = spawn(command, words, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const said: Buffer[] = [];
  const errors: Buffer[] = [];
  child.stdout.on("data", (part: Buffer) => said.push(part));
  child.stderr.on("data", (part: Buffer) => errors.push(part));
  const [code] = (await once(child, "close")) as [number | null];
  if (code === 0) return Buffer.concat(said).toString("utf8").trimEnd();
  throw new Error(
    `${command} ${words.join(" ")} failed:\n${Buffer.concat([...said, ...errors]).toString("utf8")}`,
  );
}

/** Installs the locked packages that the program needs on such a machine below a folder. */
export async function installPackages(folder: string, architecture: Architecture): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) {
    await copyFile(join(ROOT, name), join(folder, name));
  }
  const machine = ["--os=linux", `--cpu=${NAMES[architecture].npm}`, "--libc=glibc"];
  // No package of Grove's needs its install scripts, and those of another machine could not run here.
  await run("npm", ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", ...machine], folder);
}

/** Takes what only debuggers read out of a program, by the tool of its architecture. */
export async function strip(program: string, architecture: Architecture): Promise<void> {
  const { gnu } = NAMES[architecture];
  const tool = await firstInPath([`${gnu}-linux-gnu-strip`, "llvm-strip"]);
  if (tool === undefined) {
    throw new Error(
      `no tool here can strip a program for ${architecture}; on Debian: apt-get install binutils-${gnu.replace("_", "-")}-linux-gnu`,
    );
  }
  await run(tool, ["--strip-all", program], ROOT);
}

async function firstInPath(names: readonly string[]): Promise<string | undefined> {
  for (const name of names) {
    for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
      const path = join(folder, name);
      if (
        await access(path).then(
          () => true,
          () => false,
        )
      )
        return path;
    }
  }
  return undefined;
}
