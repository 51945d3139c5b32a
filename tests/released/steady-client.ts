// A person whose folders go up and come back again and again, and what failed of that.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { groveHere } from "#e2e/client-here.ts";
import { PRESENT, type Release, run } from "./releases.ts";

/** Files of all kinds that are sent: inline ones, of one chunk, of several, and the first, which resumes. */
export async function makeSource(folder: string, count: number, first = 0): Promise<void> {
  for (let index = first; index < count; index++) {
    const inner = join(folder, `d${index % 5}`);
    await mkdir(inner, { recursive: true });
    const size =
      index === 0 ? 16_000_001 : index % 40 === 1 ? 4_100_000 : index % 8 === 2 ? 200_000 : index * 9;
    const bytes = Buffer.alloc(size, `${index} `);
    if (size > 20) bytes.writeUInt32BE(index, 10);
    await writeFile(join(inner, `f${index}`), bytes);
  }
}

/** Names and contents of all files below a folder, as one checksum. */
export async function checksumOf(folder: string): Promise<string> {
  const sum = createHash("sha256");
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  for (const path of paths.toSorted()) {
    sum
      .update(path.slice(folder.length))
      .update("\0")
      .update(await readFile(path));
  }
  return sum.digest("hex");
}

/** A person at a command line of a release. */
export class SteadyClient {
  readonly email: string;
  /** Commands that ended well. */
  calls = 0;
  /** Rounds of upload and download that ended. */
  rounds = 0;
  /** True while it waits to go on. */
  isResting = false;
  /** What did not end well, with what was said. */
  readonly failures: string[] = [];
  readonly #release: Release;
  readonly #folder: string;
  readonly #env: Readonly<Record<string, string>>;
  /** Checksums of folders that are sent. */
  readonly #sums: Record<string, string> = {};
  /** Where the download that runs puts its files. */
  #fetching: string | undefined;
  /** Resolves when the client may begin its next transfers; undefined while it need not wait. */
  #rest: PromiseWithResolvers<void> | undefined;

  constructor(release: Release, folder: string, name: string) {
    this.email = `${name}@example.com`;
    this.#release = release;
    this.#folder = join(folder, `files-of-${name}`);
    this.#env = { GROVE_CONFIG_DIR: join(folder, `config-of-${name}`) };
  }

  /** Runs a command; its failure is noted. Returns its standard output. */
  async call(...words: string[]): Promise<string> {
    const settings = { env: this.#env };
    // The start of the present program is not what these walks are about.
    const { code, stdout, stderr } = await (this.#release === PRESENT
      ? groveHere(words, settings)
      : run(this.#release, words, settings));
    if (code === 0) this.calls++;
    else
      this.failures.push(`${this.#release.version}: grove ${words.join(" ")} ended with ${code}: ${stderr}`);
    return stdout;
  }

  /** True while a download has begun to come, and mostly an upload beside it. */
  get isInMidst(): boolean {
    return this.#fetching !== undefined && existsSync(this.#fetching);
  }

  /** Lets the transfers that run end, and begins no others until it goes on. */
  rest(): void {
    this.#rest ??= Promise.withResolvers();
  }

  /** Ends a rest. */
  goOn(): void {
    this.#rest?.resolve();
    this.#rest = undefined;
  }

  /** Sends one folder after the other up, and fetches the one before beside it, until it is told to stop. */
  async work(sources: readonly string[], signal: AbortSignal): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    while (!signal.aborted) {
      const source = sources[this.rounds % sources.length] ?? "";
      await Promise.all([
        this.call("put", "-q", "-r", source, `/r${this.rounds}`),
        this.#fetchLast(sources, signal),
      ]);
      this.rounds++;
      this.isResting = this.#rest !== undefined;
      await this.#rest?.promise;
      this.isResting = false;
    }
  }

  /** Fetches all that has ever been sent; what is not as it was sent is noted. */
  async checkAll(sources: readonly string[]): Promise<void> {
    const back = join(this.#folder, "again");
    await mkdir(back);
    const rounds = Array.from({ length: this.rounds }, (_, round) => `r${round}`);
    await this.call("get", "-q", "-r", ...rounds.map((name) => `/${name}`), back);
    for (const [round, name] of rounds.entries()) {
      if (!(await this.#isSame(sources[round % sources.length] ?? "", join(back, name))))
        this.failures.push(`${this.email}: /${name} is not as it was sent`);
    }
    await rm(back, { recursive: true });
  }

  /** Downloads the round before, beside the upload; what came other than it was sent is noted. */
  async #fetchLast(sources: readonly string[], signal: AbortSignal): Promise<void> {
    if (this.rounds === 0 || signal.aborted) return;
    const last = this.rounds - 1;
    const back = join(this.#folder, "before");
    this.#fetching = back;
    await this.call("get", "-q", "-r", `/r${last}`, back);
    this.#fetching = undefined;
    if (!(await this.#isSame(sources[last % sources.length] ?? "", back)))
      this.failures.push(`${this.email}: /r${last} came back other than it was sent`);
    await rm(back, { recursive: true, force: true });
  }

  async #isSame(source: string, back: string): Promise<boolean> {
    const wanted = (this.#sums[source] ??= await checksumOf(source));
    return (await checksumOf(back).catch(String)) === wanted;
  }
}
