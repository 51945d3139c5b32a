// The verdict of a test run: counts over all files, what tests failed with, and their names last on the screen.
import { join, relative } from "node:path";
import { inspect } from "node:util";

/** Lines of a failure's reason that the end of a run shows again, and characters of each. */
const REASON_LINES = 12;
const REASON_COLUMNS = 200;
/** Failures whose reasons are shown again. */
const REASONS = 10;

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
  readonly counts: { readonly tests: number };
}

/** Receives what one process reports. */
export interface ProcessResults {
  /** Notes the end of a test or suite, with the error of a failure. In a shared process, a file is a suite. */
  note(test: TestEnd, error?: unknown): void;
  /** Notes the end of a file. */
  noteSummary(summary: TestSummary): void;
}

/** Counts tests and collects the reported ones. */
export class TestVerdict {
  readonly #root: string;
  readonly #expected = new Set<string>();
  readonly #failed: string[] = [];
  readonly #skipped: string[] = [];
  readonly #reasons: string[] = [];
  #tests = 0;

  /** Names of files are shown below the root. */
  constructor(root: string) {
    this.#root = root;
  }

  /** Notes files that run from now on; each must report its end. */
  expect(files: readonly string[]): void {
    for (const file of files) this.#expected.add(file);
  }

  /** The results of a process; those of several may come mixed. */
  ofProcess(): ProcessResults {
    let [tests, testsOfEarlierFiles] = [0, 0];
    return {
      note: (test, error) => {
        const isSuite = test.details?.type === "suite";
        // In a shared process, a suite at the top is a file.
        if (isSuite && test.nesting === 0 && this.#expected.has(join(this.#root, test.name))) {
          this.#noteFile(join(this.#root, test.name), { tests: tests - testsOfEarlierFiles, error });
          testsOfEarlierFiles = tests;
          return;
        }
        // node:test reports a file that has told nothing as a test that passed; it stays among the unfinished.
        if (test.name === test.file && error === undefined) return;
        if (!isSuite) tests++;
        this.#noteTest(test, error);
      },
      noteSummary: ({ file, counts }) => {
        if (file !== undefined) this.#noteFile(file, counts);
      },
    };
  }

  #noteFile(file: string, { tests, error }: { readonly tests: number; readonly error?: unknown }): void {
    if (!this.#expected.delete(file)) return;
    const fails = (why: string): void => {
      this.#tests++;
      this.#failed.push(`${relative(this.#root, file)}  ${why}`);
    };
    if (error !== undefined && failureType(error) !== "subtestsFailed") fails("(the file itself)");
    else if (tests === 0) fails("(has registered no test)");
  }

  #noteTest(test: TestEnd, error: unknown): void {
    const isSuite = test.details?.type === "suite";
    if (!isSuite) this.#tests++;
    const place = test.file === undefined ? "" : `${relative(this.#root, test.file)}:${test.line ?? 1}  `;
    if (test.skip !== undefined || test.todo !== undefined) this.#skipped.push(place + test.name);
    // A suite fails with its tests, whose names say more.
    else if (error !== undefined && failureType(error) !== "subtestsFailed") {
      const isFile = test.name === test.file;
      const name = place + (isFile ? "(the file itself)" : test.name);
      this.#failed.push(name);
      if (this.#reasons.length < REASONS) this.#reasons.push(`${name}\n${reasonOf(error)}`);
      if (isFile) this.#expected.delete(test.name);
    }
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
      ...(this.#reasons.length > 0 ? ["", "Reasons:", ...this.#reasons] : []),
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

/** The first lines of what a test failed with, indented. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const lines = (typeof cause === "string" ? cause : inspect(cause)).split("\n").slice(0, REASON_LINES);
  return lines.map((line) => `    ${line.slice(0, REASON_COLUMNS)}`).join("\n");
}

function failureType(error: unknown): unknown {
  return typeof error === "object" && error !== null && "failureType" in error
    ? error.failureType
    : undefined;
}
