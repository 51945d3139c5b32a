// Keeps a running server's certificate fresh: follows its files, renews it in time, and never swaps a good
// one for a bad one.

import { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { errorText, type Logger } from "#base/log.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { EndWarning } from "./end-warning.ts";
import { CERTIFICATE_CHECK_INTERVAL_MS, fileStamp, stampOfFiles } from "./file-stamp.ts";
import {
  type CertificateUse,
  checkTlsMaterial,
  readTlsMaterial,
  type TlsMaterial,
  type TlsPaths,
} from "./tls-material.ts";

/** Renewal begins when this part of a certificate's life is left. */
const RENEW_AT_PART_LEFT = 1 / 3;
/** Renewal is earlier by up to this part of the life, so that nodes made together do not renew together. */
const JITTER = 0.05;
/** Pause between renewal attempts: a tenth of the time left, within these bounds. */
const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 3_600_000;
/** Pause between tries to write a renewed certificate that the disk has refused. */
const SAVE_RETRY_MS = 60_000;
/** Short-lived certificates are checked more often: this many times in a life. */
const CHECKS_PER_LIFE = 60;
const CHECK_MIN_MS = 100;

/** Dependencies of a renewer. */
export interface CertificateRenewerDeps {
  readonly paths: TlsPaths;
  /** What it is shown for: a certificate that may not be is none to start with, and none to change to. */
  readonly uses: readonly CertificateUse[];
  /**
   * Asks the authority for a new certificate for the same key, as PEM; rejects when that fails. Undefined
   * where another program renews: then only the files are followed.
   */
  readonly renew: ((current: TlsMaterial) => Promise<string>) | undefined;
  /** Receives every change, for the server and for its outgoing connections. */
  readonly onChange: (material: TlsMaterial) => void;
  readonly clock: Clock;
  /** Between 0 and 1. */
  readonly random: () => number;
  readonly log: Logger;
}

/**
 * A certificate in use. The old one stays while new files are half-written, do not match, or are not in date.
 */
export class CertificateRenewer {
  readonly #deps: CertificateRenewerDeps;
  readonly #ends: EndWarning;
  #current: TlsMaterial;
  #seen: string;
  #lifeMs = 0;
  #endMs = 0;
  #renewFromMs = 0;
  #retryFromSteadyMs = 0;
  /** True while the renewed certificate is in memory alone: a restart would read the one before. */
  #isUnsaved = false;
  #saveFromSteadyMs = 0;
  #problem: string | undefined;
  #working: Promise<void> = Promise.resolve();
  #cancel: (() => void) | undefined;
  #isClosed = false;

  private constructor(deps: CertificateRenewerDeps, material: TlsMaterial, seen: string) {
    this.#deps = deps;
    this.#ends = new EndWarning(deps.log);
    this.#current = material;
    this.#seen = seen;
    this.#measure();
  }

  /** Reads the files and follows them from now on. Throws BAD_ARGUMENT when they are unusable. */
  static async open(deps: CertificateRenewerDeps): Promise<CertificateRenewer> {
    await removeLeftovers(deps.paths.cert).catch(() => {});
    const seen = await stampOf(deps.paths);
    const renewer = new CertificateRenewer(
      deps,
      await readTlsMaterial(deps.paths, deps.clock, deps.uses),
      seen,
    );
    renewer.#schedule();
    return renewer;
  }

  /** The material in use. */
  get material(): TlsMaterial {
    return this.#current;
  }

  /** Whole days until the certificate ends; negative after it (D12). */
  get daysLeft(): number {
    return Math.floor((this.#endMs - this.#deps.clock.wallMs()) / DAY_MS);
  }

  /** Reads the files again now, changed or not; for SIGHUP. */
  reload(): Promise<void> {
    this.#seen = "";
    return this.#inTurn(() => this.#follow());
  }

  /** Checks files and renewal once; the renewer does so by itself every few seconds. */
  check(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#follow();
      await this.#saveAgain();
      await this.#renewInTime();
      this.#ends.look(this.#current.cert, this.#deps.clock.wallMs());
    });
  }

  /** Stops; resolves when nothing is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#working;
  }

  #schedule(): void {
    if (this.#isClosed) return;
    const everyMs = Math.max(
      CHECK_MIN_MS,
      Math.min(CERTIFICATE_CHECK_INTERVAL_MS, this.#lifeMs / CHECKS_PER_LIFE),
    );
    this.#cancel = this.#deps.clock.after(everyMs, () => void this.check().finally(() => this.#schedule()));
  }

  /** Runs one task after another; a failure is logged and does not stop the next. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#working = this.#working.then(work).catch((error: unknown) => {
      this.#deps.log.error("certificate_check_failed", { error: errorText(error) });
    });
    return this.#working;
  }

  async #follow(): Promise<void> {
    const { paths, clock, log, uses } = this.#deps;
    const stamp = await stampOf(paths);
    if (stamp === this.#seen) return;
    try {
      const material = await readTlsMaterial(paths, clock, uses);
      // Files that changed during the read are read again.
      if ((await stampOf(paths)) !== stamp) return;
      this.#seen = stamp;
      this.#problem = undefined;
      if (isSame(material, this.#current)) return;
      this.#isUnsaved = false;
      this.#use(material, "files");
    } catch (error) {
      // The current one stays; the problem is logged once for each state of the files.
      const problem = errorText(error);
      if (problem !== this.#problem) log.error("certificate_files_unusable", { error: problem });
      this.#problem = problem;
    }
  }

  async #renewInTime(): Promise<void> {
    const { renew, clock, log, paths, uses } = this.#deps;
    if (renew === undefined || this.#isClosed || clock.wallMs() < this.#renewFromMs) return;
    if (clock.steadyMs() < this.#retryFromSteadyMs) return;
    try {
      const material = { ...this.#current, cert: await renew(this.#current) };
      checkTlsMaterial(material, paths, { nowWallMs: clock.wallMs(), uses });
      await this.#save(material.cert);
      this.#use(material, "renewed");
    } catch (error) {
      const leftMs = this.#endMs - clock.wallMs();
      const retryMs = Math.min(RETRY_MAX_MS, Math.max(RETRY_MIN_MS, leftMs / 10));
      this.#retryFromSteadyMs = clock.steadyMs() + retryMs;
      log.warn("certificate_not_renewed", {
        days_left: this.daysLeft,
        retry_ms: Math.round(retryMs),
        error: errorText(error),
      });
    }
  }

  /** Files that somebody has changed meanwhile are theirs to complete: nothing is written over them. */
  async #saveAgain(): Promise<void> {
    const { paths, clock } = this.#deps;
    if (!this.#isUnsaved || clock.steadyMs() < this.#saveFromSteadyMs) return;
    const isGone = (await fileStamp(paths.cert)) === "none";
    if (isGone || (await stampOf(paths)) === this.#seen) await this.#save(this.#current.cert);
  }

  /** Writes the renewed certificate; while the disk refuses it, later checks try again. */
  async #save(certificatePem: string): Promise<void> {
    const { paths, clock, log } = this.#deps;
    try {
      // The key stays, so that one rename changes certificate and key from one good state to the next.
      await writeFileAtomic(paths.cert, certificatePem, { mode: 0o644 });
      this.#isUnsaved = false;
    } catch (error) {
      this.#isUnsaved = true;
      this.#saveFromSteadyMs = clock.steadyMs() + SAVE_RETRY_MS;
      log.error("certificate_not_saved", { error: errorText(error) });
    }
    this.#seen = await stampOf(paths);
  }

  #use(material: TlsMaterial, why: "files" | "renewed"): void {
    this.#current = material;
    this.#measure();
    this.#deps.onChange(material);
    this.#deps.log.info("certificate_changed", { why, days_left: this.daysLeft });
  }

  #measure(): void {
    const { validFromDate, validToDate } = new X509Certificate(this.#current.cert);
    this.#endMs = validToDate.getTime();
    this.#lifeMs = this.#endMs - validFromDate.getTime();
    const partLeft = RENEW_AT_PART_LEFT + JITTER * this.#deps.random();
    this.#renewFromMs = this.#endMs - this.#lifeMs * partLeft;
    this.#retryFromSteadyMs = 0;
  }
}

function isSame(a: TlsMaterial, b: TlsMaterial): boolean {
  return a.cert === b.cert && a.key === b.key && a.ca === b.ca;
}

async function stampOf({ cert, key, ca }: TlsPaths): Promise<string> {
  return await stampOfFiles([cert, key, ca]);
}
