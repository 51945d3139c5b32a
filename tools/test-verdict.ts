// What a run of the tests came to: the counts over all its files, then the names of what failed, so that they are the last on the screen.
import { relative } from "node:path";

/** A test as node:test reports its end. */
export interface TestEnd {
  readonly name: string;
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly skip?: string | boolean | undefined;
  readonly todo?: string | boolean | undefined;
  readonly details?: { readonly type?: string | undefined } | undefined;
}

/** What node:test reports of a file, or of the whole run where it names none. */
export interface TestSummary {
  readonly file?: string | undefined;
}

/** Counts tests, and keeps what a person must read. */
export class TestVerdict {
  readonly #root: string;
  readonly #expected = new Set<string>();
  readonly #failed: string[] = [];
  readonly #skipped: string[] = [];
  #tests = 0;

  /** Names of files are shown below the root. */
  constructor(root: string) {
    this.#root = root;
  }

  /** These files run from now on; each must tell that it has come to its end. */
  expect(files: readonly string[]): void {
    for (const file of files) this.#expected.add(file);
  }

  /** A test or a suite has ended; with an error where it failed. */
  note(test: TestEnd, error?: unknown): void {
    const isSuite = test.details?.type === "suite";
    if (!isSuite) this.#tests++;
    const place = test.file === undefined ? "" : `${relative(this.#root, test.file)}:${test.line ?? 1}  `;
    if (test.skip !== undefined || test.todo !== undefined) this.#skipped.push(place + test.name);
    // A suite, or a test around others, fails with them: their names say more.
    else if (error !== undefined && failureType(error) !== "subtestsFailed") {
      const isFile = test.name === test.file;
      this.#failed.push(place + (isFile ? "(the file itself)" : test.name));
      if (isFile) this.#expected.delete(test.name);
    }
  }

  /** A file has told all that it had to tell. */
  noteSummary({ file }: TestSummary): void {
    if (file !== undefined) this.#expected.delete(file);
  }

  /** The end of the screen. A test that was skipped is a failure where none may be. */
  words(options: { readonly mayBeSkipped: boolean }): { readonly text: string; readonly passed: boolean } {
    const unfinished = Array.from(
      this.#expected,
      (file) => `${relative(this.#root, file)}  (ended before it had told all its results)`,
    );
    const failed = [...this.#failed, ...unfinished];
    const skipped = options.mayBeSkipped ? [] : this.#skipped;
    const lines = [
      "",
      `ℹ tests ${this.#tests}`,
      `ℹ pass ${this.#tests - this.#failed.length - this.#skipped.length}`,
      `ℹ fail ${failed.length}`,
      `ℹ skipped ${this.#skipped.length}`,
    ];
    if (skipped.length > 0)
      lines.push("", "Skipped, and here none may be:", ...skipped.map((name) => `  ﹣ ${name}`));
    if (failed.length > 0) lines.push("", "Failed:", ...failed.map((name) => `  ✖ ${name}`));
    return { text: `${lines.join("\n")}\n`, passed: failed.length === 0 && skipped.length === 0 };
  }
}

function failureType(error: unknown): unknown {
  return typeof error === "object" && error !== null && "failureType" in error
    ? error.failureType
    : undefined;
}
