// What a pass of the recount has found so far: differences of counters, added up by root (D16, A-17).
import { ROOT_STRIDE } from "#storage/contract/inode.ts";
import type { Drift, RecountFinding, RecountPass } from "#storage/contract/recount-types.ts";
import {
  type DirectoryCount,
  type Fact,
  type FactKind,
  isOff,
  type RootCount,
  type Whereabouts,
} from "#storage/metadata/tree-count.ts";

const BYTES_OF = {
  directory: "directoryBytes",
  live: "liveBytes",
  trash: "trashBytes",
  staging: "stagingBytes",
} as const satisfies Record<string, keyof Drift>;

/** Staged bytes that an upload records, and those of its chunks. */
export interface UploadCount {
  readonly contentId: number;
  readonly said: number;
  readonly is: number;
}

/** Compares counters, and keeps the pass. */
export class RecountTally {
  pass: RecountPass;
  #found: RecountFinding[] = [];

  constructor(pass: RecountPass) {
    this.pass = pass;
  }

  /** What was found since the last call; undefined for nothing. */
  take(): readonly RecountFinding[] | undefined {
    const found = this.#found;
    this.#found = [];
    return found.length === 0 ? undefined : found;
  }

  /** Begins a root whose last inode has this number; undefined for one without inodes. */
  beginRoot(root: number, lastId: number | undefined): void {
    const position = root * ROOT_STRIDE;
    const sums = { surplusBytes: 0, deficitBytes: 0 };
    // A root without an inode has no directory; its counters show that.
    this.pass = { ...this.pass, root, lastId: lastId ?? position, position, ...sums };
  }

  /** Compares a directory's row with its entries. */
  directory(count: DirectoryCount, where: Whereabouts, owner: string | undefined): void {
    if (!isOff(count) || where === "passing") return;
    const { id, said, is } = count;
    const compare = (counter: string, field: keyof typeof said): void => {
      if (said[field] !== is[field])
        this.#found.push({
          owner,
          id,
          counter: `${counter} of a directory`,
          said: said[field],
          is: is[field],
        });
    };
    compare("bytes", "bytes");
    compare("entries", "entries");
    compare("inodes", "inodes");
    compare("files", "files");
    compare("levels", "height");
    this.#off("directory", said.bytes - is.bytes);
    if (where === "live")
      this.pass = { ...this.pass, inodesOff: this.pass.inodesOff + said.inodes - is.inodes };
  }

  /** Compares a root's counters and its uploads', and ends the root. */
  root(root: RootCount | undefined, uploads: readonly UploadCount[]): void {
    const owner = root?.owner;
    for (const fact of root?.facts ?? []) {
      const { said, is, kind } = fact;
      if (said === is) continue;
      this.#fact(owner, fact);
      if (kind === "trash") this.pass = { ...this.pass, trashOff: this.pass.trashOff + said - is };
    }
    for (const { contentId: id, said, is } of uploads) {
      if (said === is) continue;
      this.#found.push({ owner, counter: "staged bytes of an upload", id, said, is });
      this.#off("staging", said - is);
    }
    this.#settle();
    this.pass = { ...this.pass, lastId: 0, roots: this.pass.roots + 1 };
  }

  /** Compares the counters of the whole data directory. */
  node(facts: readonly Fact[]): void {
    for (const fact of facts) if (fact.said !== fact.is) this.#fact(undefined, fact);
    this.#settle();
  }

  #fact(owner: string | undefined, { said, is, what: counter, kind, isBytes }: Fact): void {
    this.#found.push({ owner, counter, id: undefined, said, is });
    this.#off(kind, isBytes ? said - is : 0);
  }

  /** Adds a wrong counter, by so many bytes. */
  #off(kind: FactKind | "directory", bytes: number): void {
    const { drift } = this.pass;
    const field = kind === "other" ? undefined : BYTES_OF[kind];
    this.pass = {
      ...this.pass,
      surplusBytes: sum(this.pass.surplusBytes, Math.max(0, bytes)),
      deficitBytes: sum(this.pass.deficitBytes, Math.max(0, -bytes)),
      drift: {
        ...drift,
        counters: drift.counters + 1,
        ...(field === undefined ? {} : { [field]: sum(drift[field], Math.abs(bytes)) }),
      },
    };
  }

  /** Adds up surplus and deficit of a root, or of the data directory. */
  #settle(): void {
    const { drift, surplusBytes, deficitBytes } = this.pass;
    const bytes = sum(drift.bytes, Math.max(surplusBytes, deficitBytes));
    this.pass = { ...this.pass, surplusBytes: 0, deficitBytes: 0, drift: { ...drift, bytes } };
  }
}

/** Wrong numbers may be of any size; the recorded sums must stay exact. */
function sum(a: number, b: number): number {
  return Math.min(a + b, Number.MAX_SAFE_INTEGER);
}
