// Records the issuer and subject of each e-mail address, so that a reassigned address does not open the
// former user's files.
import { rm } from "node:fs/promises";
import { z } from "zod";
import { GroveError } from "#base/errors.ts";
import { bareIssuer, isSamePerson, type VerifiedIdentity } from "#base/verified-identity.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import { type SetAsideDeps, setAside } from "#os/set-aside.ts";
import { readGenerations, readStateFile } from "#os/state-file.ts";
import { rejected } from "./claims.ts";

/** Users whose issuer and subject are recorded beside the address (decision D21). */
const SUBJECT_BOOK_ENTRIES = 100_000;

const bookFile = z.strictObject({
  schema: z.literal(1),
  subjects: z.array(z.tuple([z.string(), z.string(), z.string()])).max(SUBJECT_BOOK_ENTRIES),
});

/** Versions are in a file of their own, so that older versions of Grove can read the registry. */
const versionsFile = z.strictObject({
  schema: z.literal(1),
  versions: z.array(z.tuple([z.string(), z.string().regex(/^\d{1,19}$/)])).max(SUBJECT_BOOK_ENTRIES),
});

interface Subject {
  readonly issuer: string;
  /** Empty until the first sign-in from that issuer with the address. */
  readonly subject: string;
  /** Version of the operator's decision on the address; 0 without one. */
  readonly version: bigint;
}

/** An operator's decision on the person behind an address. */
export interface ReboundSubject extends Subject {
  readonly username: string;
}

/** The registry in a server's data directory (decision D21). */
export class SubjectRegistry {
  readonly #path: string;
  readonly #subjects: Map<string, Subject>;
  /** The current save, and the next one with all changes since. */
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  private constructor(path: string, subjects: Map<string, Subject>) {
    this.#path = path;
    this.#subjects = subjects;
  }

  /**
   * Opens or creates the registry's file. A broken or lost file is replaced by its previous generation. With `aside`
   * a broken one is set aside, since the next write would keep it as that generation. When both are broken, throws
   * CORRUPT, because an empty registry would allow every address to be taken over.
   */
  static async open(path: string, aside?: SetAsideDeps): Promise<SubjectRegistry> {
    const { content, current, isLost } = await readGenerations(path, readSubjects);
    if (isLost) {
      throw new GroveError(
        "CORRUPT",
        `${path} is damaged, and so is the generation before; restore it from a backup`,
      );
    }
    if (current === "broken" && aside !== undefined) await setAside(path, aside);
    if (content === undefined) return new SubjectRegistry(path, new Map());
    if (current === "sound") return new SubjectRegistry(path, await withVersions(path, content));
    // An older registry with a newer one's versions would treat unread decisions as applied.
    await rm(versionsPath(path), { force: true });
    return new SubjectRegistry(path, content);
  }

  /**
   * Admits an identity, and records it at its first sign-in; resolves when that is on stable storage. Throws
   * TOKEN_REJECTED when the e-mail address came with another subject before, OVERLOADED when the registry is
   * full.
   */
  async admit(identity: VerifiedIdentity): Promise<void> {
    const { username, issuer, subject } = identity;
    const known = this.#subjects.get(username);
    if (known !== undefined && !isAwaited(known, identity)) {
      if (known.subject === "" || !isSamePerson(known, identity)) {
        throw rejected("sub", "is another person's than the one this e-mail address belonged to before");
      }
      // A concurrent sign-in may have recorded it, and that may not be on the disk yet.
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

  /**
   * True for the first sign-in with an address that an operator has left open to its issuer's next subject:
   * the cluster has to agree.
   */
  isAwaited(identity: VerifiedIdentity): boolean {
    const known = this.#subjects.get(identity.username);
    return known !== undefined && isAwaited(known, identity);
  }

  /**
   * Applies an operator's newer decisions on addresses that are recorded, or whose files are here. Returns
   * those whose person has changed, once that is on stable storage.
   */
  async rebind(words: readonly ReboundSubject[], hasRoot: (username: string) => boolean): Promise<string[]> {
    const changed: string[] = [];
    const before = new Map<string, Subject | undefined>();
    for (const { username, issuer, subject, version } of words) {
      const known = this.#subjects.get(username);
      // Otherwise the first sign-in with the address after the registry was lost would get the files.
      const isMissing =
        known === undefined && this.#subjects.size < SUBJECT_BOOK_ENTRIES && hasRoot(username);
      if (known === undefined ? !isMissing : known.version >= version) continue;
      const isSame = known !== undefined && isSamePerson(known, { issuer, subject });
      this.#subjects.set(username, { issuer, subject, version });
      before.set(username, known);
      if (!isSame) changed.push(username);
    }
    if (before.size === 0) return changed;
    try {
      await this.#save();
    } catch (error) {
      // Otherwise a repetition of the decision would be ignored.
      for (const [username, known] of before) {
        if (known === undefined) this.#subjects.delete(username);
        else this.#subjects.set(username, known);
      }
      throw error;
    }
    return changed;
  }

  /**
   * Gives a person the new address that an operator has confirmed; the former one is nobody's then. Resolves when
   * that is on stable storage.
   */
  async rename(former: string, { username, issuer, subject, version }: ReboundSubject): Promise<void> {
    const [before, present] = [this.#subjects.get(former), this.#subjects.get(username)];
    const isTheirs = before !== undefined && isSamePerson(before, { issuer, subject });
    if (isTheirs) this.#subjects.delete(former);
    if (present === undefined ? isTheirs : present.version < version)
      this.#subjects.set(username, { issuer, subject, version });
    else if (!isTheirs) return;
    try {
      await this.#save();
    } catch (error) {
      if (before !== undefined) this.#subjects.set(former, before);
      if (present === undefined) this.#subjects.delete(username);
      else this.#subjects.set(username, present);
      throw error;
    }
  }

  /** Subject of an address; undefined before the first sign-in. */
  find(username: string): Subject | undefined {
    return this.#subjects.get(username);
  }

  /** Forgets a user without an operator's decision, so that the address may go to another person. */
  async forget(username: string): Promise<void> {
    if ((this.#subjects.get(username)?.version ?? 0n) > 0n) return;
    if (this.#subjects.delete(username)) await this.#save();
  }

  /** One save at a time, and one more for all changes that came during it. */
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
    // Written after the registry: a decision lost between the two is applied again.
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

/** Damaged or missing versions count as 0, so that the cluster's decisions are applied again. */
async function withVersions(path: string, subjects: Map<string, Subject>): Promise<Map<string, Subject>> {
  const kept = await readStateFile(versionsPath(path), versionsFile);
  if (typeof kept === "string") return subjects;
  for (const [username, version] of kept.versions) {
    const known = subjects.get(username);
    if (known !== undefined) subjects.set(username, { ...known, version: BigInt(version) });
  }
  return subjects;
}

async function readSubjects(path: string): Promise<Map<string, Subject> | "missing" | "broken"> {
  const kept = await readStateFile(path, bookFile);
  if (typeof kept === "string") return kept;
  return new Map(
    kept.subjects.map(([username, issuer, subject]) => [username, { issuer, subject, version: 0n }]),
  );
}
