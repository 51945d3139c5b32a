// The files of an audit log: their names, the head beside them, and their lines in bounded pieces.
import { open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { CHAIN_START, type ChainHead } from "./audit-line.ts";

/** Files of the audit log that are kept; the oldest goes first. */
export const AUDIT_FILES_KEPT = 16;
/** Bytes of one answer about the audit log, and of one read from its files. */
export const AUDIT_PAGE_BYTES = 1_048_576;

/** Folder of the log inside the data folder. */
export const AUDIT_FOLDER = "audit";
/** The head beside the log: its line must be in the chain, so a tail that was cut off is noticed. */
export const HEAD_FILE = "head.json";

const NAME = /^(\d{16})\.log$/;
const HASH = /^[0-9a-f]{64}$/;

/** A file of the log. */
export interface AuditFile {
  readonly path: string;
  /** Number of its first line. */
  readonly firstSeq: number;
}

/** The path of the file that begins with a line. */
export function auditFile(folder: string, firstSeq: number): AuditFile {
  return { path: join(folder, `${String(firstSeq).padStart(16, "0")}.log`), firstSeq };
}

/** The files of a log in order; none when there is no log. */
export async function auditFiles(folder: string): Promise<AuditFile[]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  });
  return names
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .toSorted()
    .map((digits) => auditFile(folder, Number(digits)));
}

/**
 * The head beside the log; the start of the chain when there is none yet, undefined when it is unreadable.
 */
export async function readHead(folder: string): Promise<ChainHead | undefined> {
  let text: string;
  try {
    text = await readFile(join(folder, HEAD_FILE), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return CHAIN_START;
    throw error;
  }
  try {
    const { seq, hash } = JSON.parse(text) as Record<string, unknown>;
    const isHead = typeof seq === "number" && Number.isSafeInteger(seq) && typeof hash === "string";
    return isHead && HASH.test(hash) ? { seq, hash } : undefined;
  } catch {
    return undefined;
  }
}

/** A line in its file. */
export interface StoredLine {
  readonly text: string;
  /** Its start, in bytes. */
  readonly offset: number;
  /** Start of the next, in bytes: what is damaged may be no UTF-8, and longer as text. */
  readonly end: number;
  /** False for bytes after the last end of line: torn, or under way. */
  readonly isWhole: boolean;
}

/**
 * The lines of a file in order, read in pieces. A line longer than four pieces is returned as torn, and ends
 * the reading.
 */
export async function* linesOf(path: string): AsyncGenerator<StoredLine, void, undefined> {
  const handle = await open(path, "r");
  try {
    const piece = Buffer.allocUnsafe(AUDIT_PAGE_BYTES);
    let rest: Buffer = Buffer.alloc(0);
    let offset = 0;
    for (;;) {
      const { bytesRead } = await handle.read(piece, 0, piece.length, offset + rest.length);
      if (bytesRead === 0 || rest.length > 4 * AUDIT_PAGE_BYTES) break;
      const bytes = Buffer.concat([rest, piece.subarray(0, bytesRead)]);
      let from = 0;
      for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, from)) {
        const text = bytes.toString("utf8", from, end);
        yield { text, offset: offset + from, end: offset + end + 1, isWhole: true };
        from = end + 1;
      }
      rest = Buffer.from(bytes.subarray(from));
      offset += from;
    }
    if (rest.length > 0)
      yield { text: rest.toString("utf8"), offset, end: offset + rest.length, isWhole: false };
  } finally {
    await handle.close();
  }
}
