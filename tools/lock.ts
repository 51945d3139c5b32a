// Removes from package-lock.json what an old npm on the machine's own Node would act on: `npm run fix:lock`.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const ROOT = new URL("..", import.meta.url);

/** A package of the lock. */
interface Locked {
  optional?: boolean;
  engines?: unknown;
  hasInstallScript?: boolean;
}

/** The used part of the lock. */
export interface Lock {
  readonly packages: Readonly<Record<string, Locked>>;
}

/**
 * Entries that the lock must not have. An `engines` field of an optional package makes npm omit it silently
 * on an older machine Node. A script mark that package.json denies makes npm before 11 run the script.
 */
export function foreignWords(lock: Lock, denied: readonly string[]): string[] {
  return Object.entries(lock.packages).flatMap(([path, { optional, engines, hasInstallScript }]) => [
    ...(optional === true && engines !== undefined ? [`${path}: engines`] : []),
    ...(hasInstallScript === true && isDenied(path, denied) ? [`${path}: hasInstallScript`] : []),
  ]);
}

/** The lock without these entries. */
export function withoutForeignWords(lock: Lock, denied: readonly string[]): Lock {
  const cleaned = Object.entries(lock.packages).map(([path, { engines, hasInstallScript, ...rest }]) => [
    path,
    {
      ...rest,
      ...(hasInstallScript === true && !isDenied(path, denied) ? { hasInstallScript } : {}),
      ...(engines !== undefined && rest.optional !== true ? { engines } : {}),
    },
  ]);
  return { ...lock, packages: Object.fromEntries(cleaned) as Lock["packages"] };
}

/** The lock and the denied packages of this project. */
export async function readLock(): Promise<{ lock: Lock; denied: string[] }> {
  const read = async (name: string): Promise<unknown> =>
    JSON.parse(await readFile(new URL(name, ROOT), "utf8")) as unknown;
  const { allowScripts } = (await read("package.json")) as {
    allowScripts: Readonly<Record<string, boolean>>;
  };
  const denied = Object.keys(allowScripts).filter((name) => allowScripts[name] === false);
  return { lock: (await read("package-lock.json")) as Lock, denied };
}

function isDenied(path: string, denied: readonly string[]): boolean {
  return denied.some((name) => path.endsWith(`node_modules/${name}`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { lock, denied } = await readLock();
  const text = `${JSON.stringify(withoutForeignWords(lock, denied), undefined, 2)}\n`;
  await writeFile(new URL("package-lock.json", ROOT), text);
}
