// How a connection to PostgreSQL is encrypted, from the settings of its URL.
import { readFileSync } from "node:fs";
import { GroveError } from "#base/errors.ts";
import type { PostgresSettings } from "./postgres-url.ts";

/** As node:tls takes them. */
export interface PostgresTls {
  readonly minVersion: "TLSv1.2";
  readonly rejectUnauthorized: boolean;
  readonly checkServerIdentity?: () => undefined;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Reads the certificates, which are renewed, at each connection. Throws BAD_ARGUMENT for unreadable ones. */
export function postgresTls({ sslMode, sslFiles }: PostgresSettings): PostgresTls | false {
  if (sslMode === "disable") return false;
  const options: PostgresTls = {
    minVersion: "TLSv1.2",
    rejectUnauthorized: sslMode !== "require",
    ...(sslMode === "verify-ca" ? { checkServerIdentity: () => undefined } : {}),
  };
  for (const [name, path] of Object.entries(sslFiles)) {
    readPem(path);
    Object.defineProperty(options, name, { get: () => readPem(path), enumerable: true, configurable: true });
  }
  return options;
}

function readPem(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? "";
    throw new GroveError("BAD_ARGUMENT", `cannot read ${path}: ${code}`);
  }
}
