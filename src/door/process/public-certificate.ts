// A door's certificate for people: two files, read again when they change.
import { X509Certificate } from "node:crypto";
import { stat } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { Clock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { GroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { DoorCertificate } from "#door/http/listener.ts";
import { readPem } from "#security/authority/tls-material.ts";

/** How often the files are looked at. */
const LOOK_INTERVAL_MS = 10_000;

/** Paths of the two files. */
export interface PublicPaths {
  readonly cert: string;
  readonly key: string;
}

/** A certificate that follows its files. The old one stays while new files do not belong together. */
export class PublicCertificate {
  readonly #paths: PublicPaths;
  readonly #log: Logger;
  readonly #cancel: () => void;
  #current: DoorCertificate;
  #seen: string;
  #onChange: (certificate: DoorCertificate) => void = () => {};
  #looking: Promise<void> = Promise.resolve();

  private constructor(
    paths: PublicPaths,
    first: { readonly certificate: DoorCertificate; readonly stamp: string },
    deps: { readonly clock: Clock; readonly log: Logger },
  ) {
    this.#paths = paths;
    this.#current = first.certificate;
    this.#seen = first.stamp;
    this.#log = deps.log;
    this.#cancel = deps.clock.every(LOOK_INTERVAL_MS, () => void this.reload());
  }

  /** Reads both files. Throws BAD_ARGUMENT where they cannot be read or do not belong together. */
  static async open(
    paths: PublicPaths,
    deps: { readonly clock: Clock; readonly log: Logger },
  ): Promise<PublicCertificate> {
    const stamp = await stampOf(paths);
    return new PublicCertificate(paths, { certificate: await readPair(paths), stamp }, deps);
  }

  get current(): DoorCertificate {
    return this.#current;
  }

  /** Calls back at every later change. */
  onChange(listener: (certificate: DoorCertificate) => void): void {
    this.#onChange = listener;
  }

  /** Whole days until it ends. */
  daysLeft(wallMs: number): number {
    const end = new X509Certificate(this.#current.cert).validToDate.getTime();
    return Math.floor((end - wallMs) / DAY_MS);
  }

  /** Looks at the files now. */
  reload(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#look());
    return this.#looking;
  }

  close(): void {
    this.#cancel();
  }

  async #look(): Promise<void> {
    try {
      const stamp = await stampOf(this.#paths);
      if (stamp === this.#seen) return;
      this.#seen = stamp;
      this.#current = await readPair(this.#paths);
      this.#onChange(this.#current);
      this.#log.info("public_certificate_changed", { file: this.#paths.cert });
    } catch (error) {
      this.#log.warn("public_certificate_kept", { error: errorText(error) });
    }
  }
}

async function readPair({ cert, key }: PublicPaths): Promise<DoorCertificate> {
  const pair = { cert: await readPem(cert), key: await readPem(key) };
  try {
    createSecureContext(pair);
  } catch (error) {
    throw new GroveError("BAD_ARGUMENT", `${cert} and ${key} do not belong together: ${errorText(error)}`);
  }
  return pair;
}

/** Changes whenever one of the files does, also where a link points elsewhere. */
async function stampOf({ cert, key }: PublicPaths): Promise<string> {
  const stamps = await Promise.all(
    [cert, key].map(async (path) => {
      const { ino, mtimeMs, size } = await stat(path);
      return `${ino} ${mtimeMs} ${size}`;
    }),
  );
  return stamps.join();
}
