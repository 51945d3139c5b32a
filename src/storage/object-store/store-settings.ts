// Where the chunks of a shared engine lie: bucket, address, region and files of secrets, from one URL.
import { isIP } from "node:net";
import { GroveError } from "#base/errors.ts";

/** The place of the chunks. It holds names of files, never a secret. */
export interface StoreSettings {
  /** Scheme, host and port: https://s3.example. */
  readonly endpoint: string;
  readonly bucket: string;
  /** Begins the name of every object: empty, or with "/" at its end. */
  readonly prefix: string;
  readonly region: string;
  /** Whether the bucket is named by the path or by the host. */
  readonly addressing: "path" | "virtual-host";
  readonly credentialsFile: string;
  /** PEM file of the authority that alone is trusted; undefined for the system's. */
  readonly caFile: string | undefined;
}

const FORM =
  "s3://BUCKET/PREFIX?endpoint=https://HOST&credentials=FILE, also region, addressing=path|virtual-host, ca=FILE";
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const PREFIX = /^(?:[A-Za-z0-9][A-Za-z0-9._-]*\/)*$/;
const REGION = /^[a-z0-9-]{1,64}$/;
const PREFIX_MAX_LENGTH = 256;
const KNOWN = new Set(["endpoint", "credentials", "region", "addressing", "ca", "insecure_http"]);

/**
 * Reads `s3://BUCKET/PREFIX?endpoint=…&credentials=FILE`. Throws BAD_ARGUMENT, never with the URL's text,
 * since somebody may have typed a secret there.
 */
export function storeSettings(text: string): StoreSettings {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "s3:") throw wrong("the store is not a URL of this form");
  if (url.username !== "" || url.password !== "") {
    throw wrong("a secret must not stand in the store's URL, which other users of the machine can read");
  }
  const options = url.searchParams;
  for (const name of options.keys())
    if (!KNOWN.has(name)) throw wrong("the store's URL has an unknown setting");
  const bucket = url.hostname;
  if (!BUCKET.test(bucket)) throw wrong("the store's bucket has no valid name");
  const path = url.pathname.replace(/^\/+|\/+$/g, "");
  const prefix = path === "" ? "" : `${path}/`;
  if (!PREFIX.test(prefix) || prefix.length > PREFIX_MAX_LENGTH)
    throw wrong("the store's prefix is not valid");
  const region = options.get("region") ?? "us-east-1";
  if (!REGION.test(region)) throw wrong("the store's region is not valid");
  const addressing = options.get("addressing") ?? "path";
  if (addressing !== "path" && addressing !== "virtual-host")
    throw wrong("the store's addressing is not valid");
  const credentialsFile = options.get("credentials") ?? "";
  if (credentialsFile === "") throw wrong("the store's URL names no file of credentials");
  const endpoint = endpointOf(options.get("endpoint") ?? "", options.get("insecure_http") === "1");
  return {
    endpoint,
    bucket,
    prefix,
    region,
    addressing,
    credentialsFile,
    caFile: options.get("ca") ?? undefined,
  };
}

function endpointOf(text: string, mayBePlain: boolean): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw wrong("the store's endpoint is no address of https");
  }
  if (url.username !== "" || url.password !== "" || url.pathname !== "/" || url.search !== "") {
    throw wrong("the store's endpoint is more than scheme, host and port");
  }
  if (url.protocol === "http:" && !mayBePlain && !isLoopback(url.hostname)) {
    throw wrong(
      "the store's endpoint is not encrypted: use https, or insecure_http=1 on a network of your own",
    );
  }
  return url.origin;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || (isIP(host) === 4 && host.startsWith("127."));
}

function wrong(problem: string): GroveError {
  return new GroveError("BAD_ARGUMENT", `${problem}: ${FORM}`);
}
