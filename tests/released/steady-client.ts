// A person whose folders go up and come back without a pause, and what failed of that.
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { groveHere } from "#e2e/client-here.ts";
import { PRESENT, type Release, run } from "./releases.ts";

/** Files of all kinds that are sent: inline ones, of one chunk, of several, and one that resumes. */
export async function makeSource(folder: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const inner = join(folder, `d${index % 5}`);
    await mkdir(inner, { recursive: true });
    const size =
      index === 0 ? 17_000_001 : index % 40 === 1 ? 5_000_000 : index % 8 === 2 ? 200_000 : index * 9;
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
  /** What did not end well, with what was said. */
  readonly failures: string[] = [];
  readonly #release: Release;
  readonly #folder: string;
  readonly #env: Readonly<Record<string, string>>;

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

  /** Sends a folder up and fetches it back, again and again until it is told to stop. */
  async work(source: string, signal: AbortSignal): Promise<void> {
    const wanted = await checksumOf(source);
    await mkdir(this.#folder, { recursive: true });
    while (!signal.aborted) {
      const [there, back] = [`/r${this.rounds}`, join(this.#folder, `r${this.rounds}`)];
      await this.call("mkdir", there);
      await Promise.all([this.call("put", "-q", "-r", source, there), this.#fetchLast(signal)]);
      await this.call("get", "-q", "-r", there, back);
      const found = await checksumOf(join(back, basename(source))).catch(String);
      if (found !== wanted) this.failures.push(`${this.email}: ${there} came back other than it was sent`);
      await rm(back, { recursive: true, force: true });
      this.rounds++;
    }
  }

  /** Fetches all that has ever been sent; what is not as it was sent is noted. */
  async checkAll(source: string): Promise<void> {
    const wanted = await checksumOf(source);
    for (let round = 0; round < this.rounds; round++) {
      const back = join(this.#folder, `again${round}`);
      await this.call("get", "-q", "-r", `/r${round}`, back);
      const found = await checksumOf(join(back, basename(source))).catch(String);
      if (found !== wanted) this.failures.push(`${this.email}: /r${round} is not as it was sent`);
      await rm(back, { recursive: true, force: true });
    }
  }

  /** Downloads the round before, beside the upload. */
  async #fetchLast(signal: AbortSignal): Promise<void> {
    if (this.rounds === 0 || signal.aborted) return;
    const back = join(this.#folder, "before");
    await this.call("get", "-q", "-r", `/r${this.rounds - 1}`, back);
    await rm(back, { recursive: true, force: true });
  }
}
