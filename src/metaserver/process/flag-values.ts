// Values of the MetaServer's flags, checked as the command line is read.
import { InvalidArgumentError } from "commander";

/** DNS names and addresses that a node may ask for in its certificate, each. */
export const CERTIFICATE_NAMES_MAX = 16;

const CERTIFICATE_DAYS_MAX = 825;

/** Days of a certificate's life, above 0. */
export function parseDays(text: string): number {
  const days = Number(text);
  if (days > 0 && days <= CERTIFICATE_DAYS_MAX) return days;
  throw new InvalidArgumentError(`write a number of days above 0, at most ${CERTIFICATE_DAYS_MAX}.`);
}

/** Collects the values of a flag that may be given up to CERTIFICATE_NAMES_MAX times. */
export function collect(value: string, before: readonly string[] = []): string[] {
  if (before.length >= CERTIFICATE_NAMES_MAX)
    throw new InvalidArgumentError(`at most ${CERTIFICATE_NAMES_MAX}.`);
  return [...before, value];
}

/** The public address of the doors, to the folder that WebDAV programs open. */
export function parseDoorUrl(text: string): string {
  const url = URL.parse(text);
  const isPlain = url !== null && url.search === "" && url.hash === "" && url.username === "";
  if (!isPlain || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError("write an address such as https://files.example.net");
  return `${url.origin}${url.pathname.replace(/\/$/, "")}/dav/`;
}
