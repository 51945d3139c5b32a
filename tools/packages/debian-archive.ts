// A folder as a package of Debian: the same bytes whatever folder, umask, clock and time zone it is made in.
import { chmod, lutimes, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { run } from "./package-build.ts";

/** What becomes a package. */
export interface ArchiveWork {
  /** All that is installed, with the control files below `DEBIAN`. */
  readonly tree: string;
  /** The package that is made. */
  readonly target: string;
  /** Unix seconds that all its files carry. */
  readonly epoch: number;
  /** Modes of paths in the tree that are neither a folder's 0755 nor a file's 0644. */
  readonly modes: Readonly<Record<string, number>>;
}

/** Makes the package. Modes and times of the tree become those of the package. Throws where dpkg-deb refuses it. */
export async function debianArchive({ tree, target, epoch, modes }: ArchiveWork): Promise<void> {
  const left = new Set(Object.keys(modes));
  const entries = await readdir(tree, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(tree.length + 1);
    left.delete(name);
    if (!entry.isSymbolicLink()) await chmod(path, modes[name] ?? (entry.isDirectory() ? 0o755 : 0o644));
    await lutimes(path, epoch, epoch);
  }
  if (left.size > 0) throw new Error(`the package lacks ${[...left].join(", ")}`);
  await chmod(tree, 0o755);
  await lutimes(tree, epoch, epoch);
  // One thread: how many there are would show in the bytes.
  const words = ["--root-owner-group", "-Zxz", "-z6", "--threads-max=1", "--build", tree, target];
  await run("dpkg-deb", words, dirname(tree), { ...process.env, SOURCE_DATE_EPOCH: String(epoch) });
}
