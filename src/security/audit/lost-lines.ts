// Finds in the console's copies the lines that a restored node's log has lost, and the users that they are
// about.

import type { AuditCopies } from "./audit-copies.ts";
import { linesOf } from "./audit-files.ts";
import { hashOf, readLine } from "./audit-line.ts";
import { readCopied } from "./copied-line.ts";
import { type RestoreLine, readRestore } from "./restore-line.ts";

/** Users kept by name, of each kind. */
const USERS_MAX = 1_000;

/** The lost lines. */
export interface LostLines {
  /** Hash of the last line that is still there; undefined when the copies no longer have it. */
  readonly hash: string | undefined;
  readonly count: number;
  /** Users whose files, trash or shares those lines change. */
  readonly changed: ReadonlySet<string>;
  /** Users whose quotas they change. */
  readonly quotas: ReadonlySet<string>;
}

/** Searches the copies of one chain of a source, after a line. Unwritten lines are not seen: flush first. */
export async function lostLines(
  copies: Pick<AuditCopies, "files">,
  chain: { readonly source: string; readonly generation: number },
  upTo: number,
): Promise<LostLines> {
  let hash: string | undefined;
  let count = 0;
  const [changed, quotas] = [new Set<string>(), new Set<string>()];
  for (const { path } of await copies.files()) {
    for await (const { text, isWhole } of linesOf(path)) {
      const copied = isWhole ? readCopied(text) : undefined;
      if (copied?.source !== chain.source || copied.generation !== chain.generation) continue;
      const seq = copied.text === undefined ? undefined : readLine(copied.text)?.seq;
      if (copied.text === undefined || seq === undefined) continue;
      if (seq === upTo) hash = hashOf(copied.text);
      if (seq <= upTo) continue;
      count++;
      const { act, subject } = JSON.parse(copied.text) as {
        readonly act?: unknown;
        readonly subject?: unknown;
      };
      if (typeof act !== "string" || typeof subject !== "string") continue;
      if (act === "quota.set") note(quotas, subject);
      else if (/^(?:file|share|trash)\./.test(act)) note(changed, subject.split(":/", 1)[0] ?? "");
    }
  }
  return { hash, count, changed, quotas };
}

/**
 * The last restore in the copies of one chain of a source, whose log continues from a line up to this one.
 * Unwritten lines are not seen.
 */
export async function copiedRestore(
  copies: Pick<AuditCopies, "files">,
  chain: { readonly source: string; readonly generation: number },
  knownSeq: number,
): Promise<RestoreLine | undefined> {
  let found: RestoreLine | undefined;
  for (const { path } of await copies.files()) {
    for await (const { text, isWhole } of linesOf(path)) {
      const copied = isWhole ? readCopied(text) : undefined;
      if (copied?.source !== chain.source || copied.generation !== chain.generation) continue;
      const line = copied.text === undefined ? undefined : readRestore(copied.text);
      if (line !== undefined && line.upTo <= knownSeq) found = line;
    }
  }
  return found;
}

function note(users: Set<string>, user: string): void {
  if (users.size < USERS_MAX && user.includes("@")) users.add(user);
}
