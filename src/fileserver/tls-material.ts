// Reads the certificate, key and authority that a node shows and trusts.
import { readFile } from "node:fs/promises";
import { GroveError } from "#base/errors.ts";

/** PEM texts of a node; the authority is needed with every use, since without it the public roots would be trusted. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** The files named by -tls_cert, -tls_key, -tls_ca. */
export interface TlsFiles {
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
  readonly tlsCa?: string | undefined;
}

/** Reads all three; undefined when none is named. Throws BAD_ARGUMENT when one is missing or unreadable. */
export async function readTlsMaterial(files: TlsFiles): Promise<TlsMaterial | undefined> {
  const { tlsCert, tlsKey, tlsCa } = files;
  if (tlsCert === undefined && tlsKey === undefined && tlsCa === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined || tlsCa === undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "-tls_cert, -tls_key and -tls_ca go together: the node's certificate, its key, the cluster's authority",
    );
  }
  const [cert, key, ca] = await Promise.all([readPem(tlsCert), readPem(tlsKey), readPem(tlsCa)]);
  return { cert, key, ca };
}

/** Reads a file of PEM text. Throws BAD_ARGUMENT. */
export async function readPem(path: string): Promise<string> {
  try {
    const text = await readFile(path, "utf8");
    if (text.includes("-----BEGIN ")) return text;
  } catch (cause) {
    throw new GroveError("BAD_ARGUMENT", `cannot read ${path}`, { cause });
  }
  throw new GroveError("BAD_ARGUMENT", `${path} holds no PEM text`);
}
