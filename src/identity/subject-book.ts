// Remembers which issuer and subject stand behind each e-mail address, so that a re-used address is not somebody else's files.
import { GroveError } from "#base/errors.ts";
import type { VerifiedIdentity } from "#base/verified-identity.ts";

/** The book in a server's data directory (decision D21). */
export class SubjectBook {
  /** Opens or starts the book in a file. Throws CORRUPT when neither the file nor its previous generation can be read. */
  static async open(path: string): Promise<SubjectBook> {
    void path;
    throw new GroveError("NOT_IMPLEMENTED", "being built");
  }

  /**
   * Lets an identity pass, remembering it at its first time; resolves when that is on stable storage. Throws TOKEN_REJECTED when the
   * same e-mail address came with another subject.
   */
  async admit(identity: VerifiedIdentity): Promise<void> {
    void identity;
  }
}
