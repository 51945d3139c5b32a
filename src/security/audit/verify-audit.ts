// Verifies the chain of an audit log from its first line to its last, and names the first break.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { AUDIT_FILES_KEPT, AUDIT_FOLDER, auditFiles, linesOf, readHead } from "./audit-files.ts";
import { type ChainHead, hashOf, readLine } from "./audit-line.ts";

/** Result of the verification. */
export interface AuditVerdict {
  readonly lines: number;
  /** Number and time of the first and last line; undefined for an empty log. */
  readonly first: { readonly seq: number; readonly time: string } | undefined;
  readonly last: { readonly seq: number; readonly time: string } | undefined;
  /** Where and how the chain breaks; undefined when it holds. */
  readonly broken: string | undefined;
  /** Harmless oddities: a line under way, or torn by a crash. */
  readonly notes: readonly string[];
}

/** Verifies the log of a data folder, also of a running node. It reads only. */
export async function verifyAudit(dataFolder: string): Promise<AuditVerdict> {
  const folder = join(dataFolder, AUDIT_FOLDER);
  if (!existsSync(folder)) {
    const broken = `there is no audit log in ${dataFolder}`;
    return { lines: 0, first: undefined, last: undefined, broken, notes: [] };
  }
  // Read first: a node that writes meanwhile only adds lines after it.
  const told = await readHead(folder);
  const files = await auditFiles(folder);
  const chain = new Chain(told, files.length);
  for (const [at, file] of files.entries()) {
    for await (const { text, isWhole } of linesOf(file.path)) {
      if (!isWhole && at === files.length - 1) {
        chain.notes.push(`${file.path} ends in a line that is not whole; the next start sets it aside`);
        break;
      }
      if (!chain.take(text, file.path)) return chain.verdict;
    }
  }
  chain.end(told === undefined);
  return chain.verdict;
}

class Chain {
  readonly notes: string[] = [];
  readonly #told: ChainHead | undefined;
  readonly #fileCount: number;
  #head: ChainHead | undefined;
  #lines = 0;
  #first: AuditVerdict["first"];
  #last: AuditVerdict["last"];
  #broken: string | undefined;
  #isToldMet = false;

  constructor(told: ChainHead | undefined, fileCount: number) {
    this.#told = told;
    this.#fileCount = fileCount;
  }

  get verdict(): AuditVerdict {
    return {
      lines: this.#lines,
      first: this.#first,
      last: this.#last,
      broken: this.#broken,
      notes: this.notes,
    };
  }

  /** Verifies one line; false when it breaks the chain. */
  take(text: string, path: string): boolean {
    const line = readLine(text);
    const where = `${path}, line ${line?.seq ?? `after ${this.#head?.seq ?? 0}`}`;
    if (line === undefined) return this.#breakAt(`${where}: is no line of an audit log`);
    if (this.#head === undefined) {
      if (!this.#begin(line, where)) return false;
    } else {
      if (line.seq !== this.#head.seq + 1)
        return this.#breakAt(`${where}: line ${this.#head.seq + 1} should be here`);
      if (line.prev !== this.#head.hash)
        return this.#breakAt(`${where}: does not follow from the line before it, or that one was changed`);
    }
    this.#head = { seq: line.seq, hash: hashOf(text) };
    this.#lines++;
    this.#last = { seq: line.seq, time: line.time };
    if (this.#told?.seq === line.seq) {
      this.#isToldMet = true;
      if (this.#told.hash !== this.#head.hash)
        return this.#breakAt(`${where}: is not the line that head.json tells of`);
    }
    return true;
  }

  end(isHeadMissing: boolean): void {
    if (isHeadMissing) {
      this.#breakAt("head.json cannot be read, so nobody can tell whether lines are missing at the end");
      return;
    }
    const told = this.#told;
    if (told === undefined || this.#isToldMet) return;
    if (told.seq > (this.#head?.seq ?? 0)) {
      this.#breakAt(`the log ends with line ${this.#head?.seq ?? 0}; head.json tells of line ${told.seq}`);
    } else if (told.seq > 0 && told.seq < (this.#first?.seq ?? 0)) {
      this.#breakAt(
        `the log begins with line ${this.#first?.seq ?? 0}, behind line ${told.seq} of head.json`,
      );
    }
  }

  /** The oldest line left: earlier ones were rotated away. */
  #begin(
    line: { readonly seq: number; readonly time: string; readonly prev: string },
    where: string,
  ): boolean {
    this.#first = { seq: line.seq, time: line.time };
    if (line.seq > 1 && this.#fileCount < AUDIT_FILES_KEPT) {
      return this.#breakAt(
        `the log begins with ${where}; the files before it are gone, though no rotation has taken them`,
      );
    }
    if (line.seq > 1) this.notes.push(`begins with line ${line.seq}; those before it were rotated away`);
    else if (!/^0{64}$/.test(line.prev)) this.notes.push(`${where}: says that there was one before it`);
    return true;
  }

  #breakAt(text: string): false {
    this.#broken ??= text;
    return false;
  }
}
