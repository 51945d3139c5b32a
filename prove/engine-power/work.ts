// Folders in which one caller each changes files of an engine, and what every file may hold by what was
// acknowledged.
import { createHash } from "node:crypto";
import { GroveError } from "#base/errors.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";

export const OWNER = "ada@example.com";
const NAMES = ["a", "b", "c", "d", "e"] as const;
const SMALL_BYTES = 3_000;
const LARGE_BYTES = [65_537, 300_000] as const;
/** Two chunks. */
const HUGE_BYTES = 4_100_000;
const HUGE_CHANCE = 0.03;
const LARGE_CHANCE = 0.5;

const NOTHING = "nothing";
const digestOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/** One folder. */
export class WorkedFolder {
  readonly #name: string;
  readonly #random: SeededRandom;
  /** What each name may hold: one state, or two while a call is without an answer. */
  readonly #may = new Map<string, readonly string[]>(NAMES.map((name) => [name, [NOTHING]]));
  #id: number | undefined;
  acknowledged = 0;

  constructor(name: string, random: SeededRandom) {
    this.#name = name;
    this.#random = random;
  }

  /** Makes the folder in the root. */
  async make(storage: Storage, parentId: number): Promise<void> {
    const { inode } = await storage.createDirectory({ ...BY_OWNER, parentId, name: this.#name });
    this.#id = inode.id;
  }

  /** Changes files until told to stop; a call that fails leaves both states open. */
  async work(storage: Storage, shouldGoOn: () => boolean, done: () => void): Promise<void> {
    while (shouldGoOn()) {
      const name = this.#random.pick(NAMES);
      const before = this.#may.get(name) ?? [NOTHING];
      const bytes = this.#random.chance(0.15) ? undefined : this.#content();
      if (bytes === undefined && before.length === 1 && before[0] === NOTHING) continue;
      const after = bytes === undefined ? NOTHING : digestOf(bytes);
      this.#may.set(name, [...before, after]);
      try {
        await (bytes === undefined ? this.#remove(storage, name) : this.#put(storage, name, bytes));
      } catch (error) {
        if (!(error instanceof GroveError)) throw error;
        // Refused in words that say that nothing was done, or not known: both are allowed until it is read.
        return;
      }
      this.#may.set(name, [after]);
      this.acknowledged++;
      done();
    }
  }

  /** Reads everything, and takes what is there as the state from now on. Returns what is wrong, in words. */
  async compare(storage: Storage): Promise<{ readonly problems: string[]; readonly readBytes: number }> {
    const problems: string[] = [];
    let readBytes = 0;
    for (const name of NAMES) {
      const may = this.#may.get(name) ?? [];
      let found: string;
      try {
        const bytes = await this.#read(storage, name);
        readBytes += bytes?.length ?? 0;
        found = bytes === undefined ? NOTHING : digestOf(bytes);
      } catch (error) {
        problems.push(`/${this.#name}/${name} cannot be read: ${String(error)}`);
        continue;
      }
      if (!may.includes(found)) {
        problems.push(
          `/${this.#name}/${name} has ${found.slice(0, 12)} instead of ${may.map((one) => one.slice(0, 12)).join(" or ")}`,
        );
      }
      this.#may.set(name, [found]);
    }
    return { problems, readBytes };
  }

  async #put(storage: Storage, name: string, bytes: Buffer): Promise<void> {
    const sink = storage.beginUpload({ owner: OWNER, sizeBytes: bytes.length });
    try {
      sink.beginMessage();
      for (let at = 0; at < bytes.length; at += 65_536) await sink.write(bytes.subarray(at, at + 65_536));
      sink.endMessage();
      const place = {
        parentId: this.#id ?? 0,
        name,
        onExists: "replace",
        ifMatch: undefined,
        mtimeMs: 0,
      } as const;
      await sink.commit({ ...BY_OWNER, ...place });
    } catch (error) {
      await sink.abort().catch(() => undefined);
      throw error;
    }
  }

  async #remove(storage: Storage, name: string): Promise<void> {
    const inodeId = await againWhenRowsCome(() => {
      const { chain, missing } = storage.resolve(OWNER, [this.#name, name]);
      return missing.length > 0 ? undefined : chain.at(-1)?.id;
    });
    if (inodeId === undefined) throw new GroveError("NO_SUCH_PATH", "it is not there");
    await storage.remove({ ...BY_OWNER, inodeId, recursive: false });
  }

  async #read(storage: Storage, name: string): Promise<Buffer | undefined> {
    const content = await againWhenRowsCome(() => {
      const { chain, missing } = storage.resolve(OWNER, [this.#name, name]);
      const file = chain.at(-1);
      return missing.length > 0 || file === undefined ? undefined : storage.openFile(file.id);
    });
    if (content === undefined) return undefined;
    try {
      const blocks: Buffer[] = [];
      for (let at = 0; at < content.inode.sizeBytes; at += blocks.at(-1)?.length ?? 0) {
        blocks.push(Buffer.from(await content.readBlock(at)));
      }
      return Buffer.concat(blocks);
    } finally {
      content.close();
    }
  }

  #content(): Buffer {
    const random = this.#random;
    if (random.chance(HUGE_CHANCE)) return Buffer.alloc(HUGE_BYTES, random.bytes(4_099));
    return random.bytes(
      random.chance(LARGE_CHANCE) ? random.between(...LARGE_BYTES) : 1 + random.below(SMALL_BYTES),
    );
  }
}

const BY_OWNER = { owner: OWNER, by: OWNER, accessVersion: undefined } as const;
