// What the console has of a log that was taken back to an earlier moment: the line that it goes on from, and what is told by those behind it.

import type { AuditCopies } from "./audit-copies.ts";
import { linesOf } from "./audit-files.ts";
import { hashOf, readLine } from "./audit-line.ts";
import { readCopied } from "./copied-line.ts";
import { type RestoreLine, readRestore } from "./restore-line.ts";

/** Users that are kept by name, of each kind. */
const USERS_MAX = 1_000;

/** What was found. */
export interface LostLines {
  /** Hash of the last line that is still there; undefined when it is not among the copies any more. */
  readonly hash: string | undefined;
  readonly count: number;
  /** Whose files, trash or shares those lines tell of. */
  readonly changed: ReadonlySet<string>;
  /** Whose quotas they tell of. */
  readonly quotas: ReadonlySet<string>;
}

/** Looks through the copies of one chain of a source, from behind a line on. What waits to be written is not seen: flush first. */
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

/** The last restore that the copies of one chain of a source tell of, and that goes on from a line up to this one. What waits to be written is not seen. */
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
