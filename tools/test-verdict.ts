// The verdict of a test run: counts over all files, then the names of failed tests, last on the screen.
import { join, relative } from "node:path";

/** The end of a test, as node:test reports it. */
export interface TestEnd {
  readonly name: string;
  /** 0 at the top of a process. */
  readonly nesting?: number | undefined;
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly skip?: string | boolean | undefined;
  readonly todo?: string | boolean | undefined;
  readonly details?: { readonly type?: string | undefined } | undefined;
}

/** A summary of node:test, for a file or for the whole run. */
export interface TestSummary {
  readonly file?: string | undefined;
}

/** Counts tests and collects the reported ones. */
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

  /** Notes files that run from now on; each must report its end. */
  expect(files: readonly string[]): void {
    for (const file of files) this.#expected.add(file);
  }

  /** Notes the end of a test or suite, with the error of a failure. In a shared process, a file is a suite. */
  note(test: TestEnd, error?: unknown): void {
    const isSuite = test.details?.type === "suite";
    if (isSuite && test.nesting === 0 && this.#expected.delete(join(this.#root, test.name))) {
      if (error !== undefined && failureType(error) !== "subtestsFailed") {
        this.#tests++;
        this.#failed.push(`${test.name}  (the file itself)`);
      }
      return;
    }
    if (!isSuite) this.#tests++;
    const place = test.file === undefined ? "" : `${relative(this.#root, test.file)}:${test.line ?? 1}  `;
    if (test.skip !== undefined || test.todo !== undefined) this.#skipped.push(place + test.name);
    // A suite fails with its tests, whose names say more.
    else if (error !== undefined && failureType(error) !== "subtestsFailed") {
      const isFile = test.name === test.file;
      this.#failed.push(place + (isFile ? "(the file itself)" : test.name));
      if (isFile) this.#expected.delete(test.name);
    }
  }

  /** Notes the end of a file. */
  noteSummary({ file }: TestSummary): void {
    if (file !== undefined) this.#expected.delete(file);
  }

  /** The final lines. A skipped test is a failure unless it may be skipped. */
  words(options: { readonly mayBeSkipped: boolean }): { readonly text: string; readonly passed: boolean } {
    const unfinished = Array.from(
      this.#expected,
      (file) => `${relative(this.#root, file)}  (ended before it had told all its results)`,
    );
    const byPlace = new Intl.Collator("en", { numeric: true }).compare;
    const failed = [...this.#failed, ...unfinished].toSorted(byPlace);
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
