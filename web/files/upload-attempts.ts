// How often the upload of one file is tried, and what a failure means for the next try.
import type { Refusal } from "./api.ts";

const WAIT_FIRST_MS = 500;
const WAIT_LONGEST_MS = 8_000;
/** A door that is away longer than some minutes needs a person. */
const TRIES_MAX = 60;
/** Said after a cut until the server has noticed it; the next try asks how far the upload is. */
const OFFSET_CODES: readonly string[] = ["OFFSET_MISMATCH", "UPLOAD_TAKEN_OVER", "NO_SUCH_UPLOAD"];

/** What to do before the next try. */
export interface NextTry {
  readonly waitMs: number;
  /** True where the folders above may have been deleted meanwhile. */
  readonly isFolderGone: boolean;
}

/** The tries of one file. */
export class Attempts {
  #failures = 0;
  #waitMs = WAIT_FIRST_MS;
  #safeBytes = 0;
  #safeAtFailure = 0;
  #hasMadeFoldersAnew = false;
  #isRepeated = false;

  /** True after a failure, whose request may have done its work. */
  get isRepeated(): boolean {
    return this.#isRepeated;
  }

  /** Takes down how many bytes the server has for sure. */
  noteSafe(bytes: number): void {
    this.#safeBytes = bytes;
    // An upload that had to begin anew moves on from there.
    this.#safeAtFailure = Math.min(this.#safeAtFailure, bytes);
  }

  /** The next try after a refusal; undefined where none may help. */
  after(refusal: Refusal): NextTry | undefined {
    this.#isRepeated = true;
    // Bytes that have moved on show a server that answers: the patience begins anew.
    if (this.#safeBytes > this.#safeAtFailure) {
      this.#failures = 0;
      this.#waitMs = WAIT_FIRST_MS;
      this.#hasMadeFoldersAnew = false;
      this.#safeAtFailure = this.#safeBytes;
    }
    if (refusal.code === "NO_SUCH_PATH" && !this.#hasMadeFoldersAnew) {
      this.#hasMadeFoldersAnew = true;
      return { waitMs: 0, isFolderGone: true };
    }
    this.#failures++;
    const passes = refusal.isPassing || OFFSET_CODES.includes(refusal.code);
    if (!passes || this.#failures >= TRIES_MAX) return undefined;
    const waitMs = this.#waitMs;
    this.#waitMs = Math.min(2 * waitMs, WAIT_LONGEST_MS);
    return { waitMs, isFolderGone: false };
  }
}
