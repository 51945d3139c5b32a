// The report of an import: a line of CSV for each file, with what became of it.

import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import { stringify } from "csv-stringify/sync";
import { localFailure } from "#client/terminal/client-error.ts";

/** What became of a file. */
export type Outcome = "imported" | "unchanged" | "skipped" | "failed" | "would be imported";

/** A report in a file, or none. */
export interface ImportReport extends AsyncDisposable {
  /** Adds a line; await it before the next. */
  add(place: string, outcome: Outcome, bytes: number, why?: string): Promise<void> | undefined;
}

/** The report of an import that wants none. */
export const NO_REPORT: ImportReport = {
  add: () => undefined,
  [Symbol.asyncDispose]: async () => undefined,
};

/** Begins a report in a new file, which only its user may read. Rejects with ClientError, also when it exists. */
export async function reportIn(path: string): Promise<ImportReport> {
  const file = createWriteStream(path, { flags: "wx", mode: 0o600 });
  try {
    await once(file, "open");
  } catch (error) {
    throw localFailure(error, path);
  }
  return new CsvReport(file, path);
}

class CsvReport implements ImportReport {
  readonly #file: WriteStream;
  readonly #path: string;
  #failure: Error | undefined;

  constructor(file: WriteStream, path: string) {
    this.#file = file;
    this.#path = path;
    file.on("error", (error) => {
      this.#failure ??= localFailure(error, path) as Error;
    });
    file.write("path,outcome,bytes,why\n");
  }

  add(place: string, outcome: Outcome, bytes: number, why = ""): Promise<void> | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    // No spreadsheet takes a name for a formula.
    const line = stringify([[place, outcome, bytes, why]], { escape_formulas: true });
    return this.#file.write(line) ? undefined : this.#drained();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#file.end();
    await finished(this.#file).catch((error: unknown) => {
      throw localFailure(error, this.#path);
    });
  }

  async #drained(): Promise<void> {
    await once(this.#file, "drain").catch(() => undefined);
  }
}
