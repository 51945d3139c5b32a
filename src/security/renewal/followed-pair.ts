// A certificate and its key for people's programs: two files, read again when they change.
import { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { errorText, type Logger } from "#base/log.ts";
import { EndWarning } from "#security/authority/end-warning.ts";
import { stampOfFiles } from "#security/authority/file-stamp.ts";
import {
  certificateEndMs,
  certificatesIn,
  checkDates,
  checkForTls,
  checkUses,
  readPem,
} from "#security/authority/tls-material.ts";

/** How often the files are looked at. */
export const PAIR_LOOK_INTERVAL_MS = 10_000;

/** Certificate chain and key, PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** A pair that follows its files. The old one stays while new files do not belong together or are not in date. */
export class FollowedPair {
  readonly #paths: CertificatePair;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #ends: EndWarning;
  readonly #cancel: () => void;
  #current: CertificatePair;
  #seen: string;
  #problem: string | undefined;
  #onChange: (pair: CertificatePair) => void = () => {};
  #looking: Promise<void> = Promise.resolve();

  private constructor(
    paths: CertificatePair,
    first: { readonly pair: CertificatePair; readonly stamp: string },
    deps: { readonly clock: Clock; readonly log: Logger },
  ) {
    this.#paths = paths;
    this.#current = first.pair;
    this.#seen = first.stamp;
    this.#log = deps.log;
    this.#clock = deps.clock;
    this.#ends = new EndWarning(deps.log, { file: paths.cert });
    this.#cancel = deps.clock.every(PAIR_LOOK_INTERVAL_MS, () => void this.reload());
  }

  /**
   * Reads both files by their paths. Throws BAD_ARGUMENT where they are unreadable, do not match or are for no
   * server. One that has ended still starts: there is no better one, and its end is logged.
   */
  static async open(
    paths: CertificatePair,
    deps: { readonly clock: Clock; readonly log: Logger },
  ): Promise<FollowedPair> {
    const stamp = await stampOf(paths);
    return new FollowedPair(paths, { pair: await readPair(paths), stamp }, deps);
  }

  get current(): CertificatePair {
    return this.#current;
  }

  /** Calls back at every later change. */
  onChange(listener: (pair: CertificatePair) => void): void {
    this.#onChange = listener;
  }

  /** Whole days until it ends. */
  daysLeft(wallMs: number): number {
    return Math.floor((certificateEndMs(this.#current.cert) - wallMs) / DAY_MS);
  }

  /** Looks at the files now. */
  reload(): Promise<void> {
    this.#looking = this.#looking
      .then(() => this.#look())
      .then(() => this.#ends.look(this.#current.cert, this.#clock.wallMs()));
    return this.#looking;
  }

  close(): void {
    this.#cancel();
  }

  async #look(): Promise<void> {
    try {
      const stamp = await stampOf(this.#paths);
      if (stamp === this.#seen) return;
      const pair = await readPair(this.#paths);
      checkDates(new X509Certificate(pair.cert), this.#paths.cert, this.#clock.wallMs());
      // Files that could not be read, or did not match yet, are read again at the next look.
      this.#seen = stamp;
      this.#problem = undefined;
      this.#current = pair;
      this.#onChange(pair);
      this.#log.info("public_certificate_changed", { file: this.#paths.cert });
    } catch (error) {
      const problem = errorText(error);
      if (problem !== this.#problem) this.#log.warn("public_certificate_kept", { error: problem });
      this.#problem = problem;
    }
  }
}

async function readPair(paths: CertificatePair): Promise<CertificatePair> {
  const pair = { cert: await readPem(paths.cert), key: await readPem(paths.key) };
  const [leaf] = certificatesIn(pair.cert, paths.cert);
  checkForTls(pair, paths);
  if (leaf !== undefined) checkUses(leaf, paths.cert, ["server"]);
  return pair;
}

/** Changes whenever one of the files does, also where a link points elsewhere. */
function stampOf({ cert, key }: CertificatePair): Promise<string> {
  return stampOfFiles([cert, key]);
}
