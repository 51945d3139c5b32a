// Remembers which issuer and subject stand behind each e-mail address, so that an address given to somebody new opens no old files.
import { rm } from "node:fs/promises";
import { z } from "zod";
import { GroveError } from "#base/errors.ts";
import { bareIssuer, type VerifiedIdentity } from "#base/verified-identity.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { readGenerations, readStateFile } from "#os/state-file.ts";
import { rejected } from "./claims.ts";

/** Users whose issuer and subject are remembered beside the address (decision D21). */
const SUBJECT_BOOK_ENTRIES = 100_000;

const bookFile = z.strictObject({
  schema: z.literal(1),
  subjects: z.array(z.tuple([z.string(), z.string(), z.string()])).max(SUBJECT_BOOK_ENTRIES),
});

/** Versions are in a file of their own, so that the book stays one that older versions of Grove read. */
const versionsFile = z.strictObject({
  schema: z.literal(1),
  versions: z.array(z.tuple([z.string(), z.string().regex(/^\d{1,19}$/)])).max(SUBJECT_BOOK_ENTRIES),
});

interface Subject {
  readonly issuer: string;
  /** Empty while it is the first to come from that issuer with the address. */
  readonly subject: string;
  /** Of the operator's word on the address; 0 where there is none. */
  readonly version: bigint;
}

/** An operator's word on whose an address is. */
export interface ReboundSubject extends Subject {
  readonly username: string;
}

/** The book in a server's data directory (decision D21). */
export class SubjectRegistry {
  readonly #path: string;
  readonly #subjects: Map<string, Subject>;
  /** The save that is running, and the one that will begin after it with all that came in between. */
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  private constructor(path: string, subjects: Map<string, Subject>) {
    this.#path = path;
    this.#subjects = subjects;
  }

  /**
   * Opens or starts the book in a file. A broken or lost file gives way to its previous generation; when that is no better, throws CORRUPT, because an empty book would let every address be taken over.
   */
  static async open(path: string): Promise<SubjectRegistry> {
    const { content, current, isLost } = await readGenerations(path, readBook);
    if (isLost) {
      throw new GroveError(
        "CORRUPT",
        `${path} is damaged, and so is the generation before; restore it from a backup`,
      );
    }
    if (content === undefined) return new SubjectRegistry(path, new Map());
    if (current === "sound") return new SubjectRegistry(path, await withVersions(path, content));
    // An older book with the versions of a newer one would take the operator's word for heard.
    await rm(versionsPath(path), { force: true });
    return new SubjectRegistry(path, content);
  }

  /**
   * Lets an identity pass, remembering it at its first time; resolves when that is on stable storage. Throws TOKEN_REJECTED when the
   * same e-mail address came with another subject before, OVERLOADED when the book is full.
   */
  async admit(identity: VerifiedIdentity): Promise<void> {
    const { username, issuer, subject } = identity;
    const known = this.#subjects.get(username);
    if (known !== undefined && !isAwaited(known, identity)) {
      const isSame = known.subject !== "" && known.subject === subject;
      if (!isSame || bareIssuer(known.issuer) !== bareIssuer(issuer)) {
        throw rejected("sub", "is another person's than the one this e-mail address belonged to before");
      }
      // Another sign-in may have written it down a moment ago, and that may not be on the disk yet.
      await (this.#next ?? this.#running);
      return;
    }
    if (subject === "") return;
    if (known === undefined && this.#subjects.size >= SUBJECT_BOOK_ENTRIES) {
      throw new GroveError("OVERLOADED", "this server cannot take more users");
    }
    this.#subjects.set(username, { issuer, subject, version: known?.version ?? 0n });
    try {
      await this.#save();
    } catch (error) {
      if (known === undefined) this.#subjects.delete(username);
      else this.#subjects.set(username, known);
      throw error;
    }
  }

  /** True for the first who comes with an address that an operator has left to whoever its issuer says it is: the cluster has to agree. */
  isAwaited(identity: VerifiedIdentity): boolean {
    const known = this.#subjects.get(identity.username);
    return known !== undefined && isAwaited(known, identity);
  }

  /**
   * Takes an operator's word on addresses that are in the book, or whose files are here, where it is newer; answers with those that have
   * changed hands, once that is on stable storage.
   */
  async rebind(words: readonly ReboundSubject[], hasRoot: (username: string) => boolean): Promise<string[]> {
    const changed: string[] = [];
    const before = new Map<string, Subject | undefined>();
    for (const { username, issuer, subject, version } of words) {
      const known = this.#subjects.get(username);
      // Else the first who came with the address after the book was lost would have the files.
      const isMissing =
        known === undefined && this.#subjects.size < SUBJECT_BOOK_ENTRIES && hasRoot(username);
      if (known === undefined ? !isMissing : known.version >= version) continue;
      const isSame =
        known !== undefined && bareIssuer(known.issuer) === bareIssuer(issuer) && known.subject === subject;
      this.#subjects.set(username, { issuer, subject, version });
      before.set(username, known);
      if (!isSame) changed.push(username);
    }
    if (before.size === 0) return changed;
    try {
      await this.#save();
    } catch (error) {
      // Else it would be taken for heard when it is said again.
      for (const [username, known] of before) {
        if (known === undefined) this.#subjects.delete(username);
        else this.#subjects.set(username, known);
      }
      throw error;
    }
    return changed;
  }

  /** Whom an address belongs to; undefined when nobody has come with it yet. */
  find(username: string): Subject | undefined {
    return this.#subjects.get(username);
  }

  /** Forgets a user of whom no operator has said anything, so that the address may belong to somebody else from now on. */
  async forget(username: string): Promise<void> {
    if ((this.#subjects.get(username)?.version ?? 0n) > 0n) return;
    if (this.#subjects.delete(username)) await this.#save();
  }

  /** One save at a time, and one more for all that came in while it ran. */
  #save(): Promise<void> {
    if (this.#next !== undefined) return this.#next;
    const before = this.#running ?? Promise.resolve();
    const next = before
      .catch(() => {})
      .then(() => {
        this.#running = next;
        this.#next = undefined;
        return this.#write();
      })
      .finally(() => {
        if (this.#running === next) this.#running = undefined;
      });
    this.#next = next;
    return next;
  }

  async #write(): Promise<void> {
    const subjects = [...this.#subjects].map(([username, { issuer, subject }]) => [
      username,
      issuer,
      subject,
    ]);
    const versions = [...this.#subjects]
      .filter(([, { version }]) => version > 0n)
      .map(([username, { version }]) => [username, String(version)]);
    await writeFileAtomic(this.#path, JSON.stringify({ schema: 1, subjects }), { keepPrevious: true });
    // Behind the book: what is lost between the two is an operator's word that will be heard once more.
    if (versions.length > 0)
      await writeFileAtomic(versionsPath(this.#path), JSON.stringify({ schema: 1, versions }));
  }
}

function versionsPath(path: string): string {
  return path.replace(/(?:\.json)?$/, "-versions.json");
}

function isAwaited(known: Subject, { issuer, subject }: VerifiedIdentity): boolean {
  return known.subject === "" && subject !== "" && bareIssuer(known.issuer) === bareIssuer(issuer);
}

/** Where the versions are damaged or lost they are 0, so that the cluster's word is taken once more. */
async function withVersions(path: string, subjects: Map<string, Subject>): Promise<Map<string, Subject>> {
  const kept = await readStateFile(versionsPath(path), versionsFile);
  if (typeof kept === "string") return subjects;
  for (const [username, version] of kept.versions) {
    const known = subjects.get(username);
    if (known !== undefined) subjects.set(username, { ...known, version: BigInt(version) });
  }
  return subjects;
}

async function readBook(path: string): Promise<Map<string, Subject> | "missing" | "broken"> {
  const kept = await readStateFile(path, bookFile);
  if (typeof kept === "string") return kept;
  return new Map(
    kept.subjects.map(([username, issuer, subject]) => [username, { issuer, subject, version: 0n }]),
  );
}
