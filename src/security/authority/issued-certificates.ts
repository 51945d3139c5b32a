// Records the signed certificates of an authority: a file for each, so that concurrent processes need no
// lock.
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { GroveError } from "#base/errors.ts";
import { OwnedFolder } from "#os/folder-owner.ts";

/** Default life of a node's certificate (decision D20): 90 days. */
export const NODE_CERTIFICATE_LIFETIME_MS: number = 90 * 86_400_000;
/** Certificates on record; 1,000 nodes that renew every 60 days need far fewer. */
const ISSUED_CERTIFICATES_MAX = 100_000;
/** How long a certificate stays on record after its end. */
const ISSUED_KEPT_AFTER_END_MS: number = 30 * 86_400_000;

const FILE = /^[0-9a-f]{1,40}\.crt$/;

/** A certificate that the authority has signed. */
export interface IssuedRecord {
  /** Lower-case hex without leading zeros. */
  readonly serial: string;
  /** The node's id: the certificate's common name. */
  readonly id: string;
  readonly notBeforeWallMs: number;
  readonly notAfterWallMs: number;
  readonly certificatePem: string;
}

/** The folder of signed certificates. */
export class IssuedCertificates {
  readonly #folder: OwnedFolder;

  constructor(folder: string) {
    this.#folder = new OwnedFolder(folder, FILE);
  }

  /**
   * Adds a certificate; those that ended more than 30 days ago are removed. Throws OVERLOADED beyond 100,000.
   */
  async add(certificatePem: string, nowWallMs: number): Promise<void> {
    if ((await this.#folder.names()).length >= ISSUED_CERTIFICATES_MAX) {
      await this.#forgetEnded(nowWallMs);
      if ((await this.#folder.names()).length >= ISSUED_CERTIFICATES_MAX) {
        throw new GroveError(
          "OVERLOADED",
          `the authority has ${ISSUED_CERTIFICATES_MAX} certificates that still count`,
        );
      }
    }
    const serial = normalSerial(new X509Certificate(certificatePem).serialNumber);
    await this.#folder.replace(`${serial}.crt`, certificatePem);
  }

  /**
   * All certificates, by id and then the newest first; those that ended more than 30 days ago are removed.
   */
  async list(nowWallMs: number): Promise<IssuedRecord[]> {
    await this.#forgetEnded(nowWallMs);
    const records: IssuedRecord[] = [];
    for (const name of await this.#folder.names()) {
      const record = await this.#read(name);
      if (record !== undefined) records.push(record);
    }
    return records.sort((a, b) =>
      // By the beginning: a newer one may end before its predecessor (-cert_days).
      a.id === b.id ? b.notBeforeWallMs - a.notBeforeWallMs : a.id < b.id ? -1 : 1,
    );
  }

  async #forgetEnded(nowWallMs: number): Promise<void> {
    for (const name of await this.#folder.names()) {
      const record = await this.#read(name);
      if (record !== undefined && record.notAfterWallMs < nowWallMs - ISSUED_KEPT_AFTER_END_MS) {
        await this.#folder.remove(name);
      }
    }
  }

  async #read(name: string): Promise<IssuedRecord | undefined> {
    try {
      const certificatePem = await readFile(this.#folder.pathOf(name), "utf8");
      const certificate = new X509Certificate(certificatePem);
      return {
        serial: normalSerial(certificate.serialNumber),
        id: /^CN=([a-z0-9-]{1,63}(?:\.door)?)$/.exec(certificate.subject)?.[1] ?? certificate.subject,
        notBeforeWallMs: certificate.validFromDate.getTime(),
        notAfterWallMs: certificate.validToDate.getTime(),
        certificatePem,
      };
    } catch {
      // Removed meanwhile, or a foreign file.
      return undefined;
    }
  }
}

/** A serial number in the form that lists compare: lower-case hex without leading zeros. */
export function normalSerial(serial: string): string {
  return serial
    .toLowerCase()
    .replaceAll(":", "")
    .replace(/^0+(?=.)/, "");
}
