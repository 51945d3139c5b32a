// Lines of the log about a certificate's end: one a day from a fortnight before it (failure B-11).
import { X509Certificate } from "node:crypto";
import { DAY_MS } from "#base/duration.ts";
import { CERTIFICATE_WARNING_DAYS } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";

/** The part of a short life before whose last part there is no line: renewals come at a third. */
const SHORT_LIFE_PART = 1 / 4;

/** Tells of the end of one certificate, then of the next one in its place. */
export class EndWarning {
  readonly #log: Logger;
  readonly #facts: Readonly<Record<string, string>>;
  #pem = "";
  #endMs = 0;
  #lifeMs = 0;
  #warnedDay: number | undefined;

  constructor(log: Logger, facts: Readonly<Record<string, string>> = {}) {
    this.#log = log;
    this.#facts = facts;
  }

  /** Logs a line where one is due for this certificate. */
  look(certificatePem: string, wallMs: number): void {
    this.#measure(certificatePem);
    const leftMs = this.#endMs - wallMs;
    const days = Math.floor(leftMs / DAY_MS);
    if (leftMs >= Math.min(CERTIFICATE_WARNING_DAYS * DAY_MS, this.#lifeMs * SHORT_LIFE_PART)) return;
    if (days === this.#warnedDay) return;
    this.#warnedDay = days;
    this.#log[days < 3 ? "error" : "warn"]("certificate_ends", {
      ...this.#facts,
      days_left: days,
      text: days < 0 ? "the certificate has ended: nobody can connect any more" : "the certificate ends soon",
    });
  }

  #measure(certificatePem: string): void {
    if (certificatePem === this.#pem) return;
    const { validFromDate, validToDate } = new X509Certificate(certificatePem);
    this.#pem = certificatePem;
    this.#endMs = validToDate.getTime();
    this.#lifeMs = this.#endMs - validFromDate.getTime();
    this.#warnedDay = undefined;
  }
}
