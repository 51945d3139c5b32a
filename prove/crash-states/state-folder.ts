// A folder that becomes one crash state after the other, rewriting only the differences.
import { createHash, hash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CrashImage } from "./crash-mixture.ts";

/** Files that opening a store never changes, only removes. */
const IMMUTABLE = "chunks/";

const hashes = new WeakMap<Buffer, string>();

/** True for a file, by its path in an image, that opening a store may remove and never changes. */
export function isImmutable(path: string): boolean {
  return path.startsWith(IMMUTABLE);
}

/** Hash of bytes that no longer change; computed once. */
export function hashOf(bytes: Buffer): string {
  let known = hashes.get(bytes);
  if (known === undefined) {
    known = hash("sha1", bytes);
    hashes.set(bytes, known);
  }
  return known;
}

/** Identifies an image by all its content. */
export function imageHash({ folders, files }: CrashImage): string {
  const all = createHash("sha1");
  // Nearly always all of them.
  all.update(`${folders.length}\n`);
  for (const [path, bytes] of files) all.update(`${path} ${hashOf(bytes)}\n`);
  return all.digest("hex");
}

/** See above. */
export class StateFolder {
  readonly path: string;
  /** Content of each file when made; it may be gone, and mutable files may differ. */
  readonly #written = new Map<string, string>();
  readonly #folders = new Set<string>();

  constructor(path: string) {
    this.path = path;
    mkdirSync(path, { recursive: true, mode: 0o700 });
  }

  /** Makes the folder hold this image and nothing else. */
  become({ folders, files }: CrashImage): void {
    const wanted = new Set(folders);
    for (const folder of this.#folders) {
      if (wanted.has(folder)) continue;
      rmSync(join(this.path, folder), { recursive: true, force: true });
      this.#folders.delete(folder);
    }
    for (const folder of folders) {
      if (this.#folders.has(folder)) continue;
      mkdirSync(join(this.path, folder), { recursive: true, mode: 0o700 });
      this.#folders.add(folder);
    }
    for (const name of readdirSync(this.path)) {
      if (!files.has(name) && !wanted.has(name)) rmSync(join(this.path, name), { recursive: true });
    }
    for (const path of this.#written.keys()) {
      if (files.has(path)) continue;
      rmSync(join(this.path, path), { force: true });
      this.#written.delete(path);
    }
    for (const [path, bytes] of files) {
      const key = hashOf(bytes);
      const full = join(this.path, path);
      const isThere =
        this.#written.get(path) === key &&
        isImmutable(path) &&
        existsSync(full) &&
        statSync(full).size === bytes.length;
      if (isThere) continue;
      writeFileSync(full, bytes, { mode: 0o600 });
      this.#written.set(path, key);
    }
  }

  /** Forgets the folders of the last start, which the next image may lack. */
  forget(): void {
    this.#folders.clear();
    this.#written.clear();
    rmSync(this.path, { recursive: true, force: true });
    mkdirSync(this.path, { mode: 0o700 });
  }
}
