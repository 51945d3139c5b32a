// Opens channels to `host:port`, with TLS except in mock clusters, over one IP family at a time.
import { isIP } from "node:net";
import { ClientError } from "#client/terminal/client-error.ts";
import { GrpcChannel, type GrpcChannelOptions } from "#wire/grpc/client.ts";
import { MOCK_PREFIX } from "./mock-token.ts";
import type { Profile } from "./profile.ts";

/** IP family of a connection. */
export type Family = 4 | 6;

/** One family of a host, with its addresses as `ip:port`. */
export interface FamilyAddresses {
  /** Undefined for a numeric host, which has only one family. */
  readonly family: Family | undefined;
  readonly addresses: readonly string[];
}

/** Silence before a channel sends a keepalive ping, and the time limit of its answer. */
const KEEPALIVE = { intervalMs: 20_000, timeoutMs: 20_000 } as const;

/** Splits `host:port`, brackets of IPv6 removed. */
export function splitAddress(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at);
  return { host: host.startsWith("[") ? host.slice(1, -1) : host, port: Number(address.slice(at + 1)) };
}

/** True for an address of this machine: secrets sent there do not leave it. */
export function isLoopback(address: string): boolean {
  const { host } = splitAddress(address);
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/**
 * The families of an address in the system's order of preference; only the wanted one if given. A session is
 * tied to its address, so it must not change between IPv4 and IPv6 (decision T22).
 */
export async function familiesOf(address: string, wanted: Family | undefined): Promise<FamilyAddresses[]> {
  const { host, port } = splitAddress(address);
  if (isIP(host) !== 0) return [{ family: undefined, addresses: [address] }];
  const { lookup } = await import("node:dns/promises");
  let found: { address: string; family: number }[];
  try {
    found = await lookup(host, { all: true, order: "verbatim" });
  } catch (error) {
    throw new ClientError("NETWORK", `no address is known for ${host}`, {
      todo: "Check the name of the server.",
      cause: error,
    });
  }
  const families: { family: Family; addresses: string[] }[] = [];
  for (const { address: ip, family } of found) {
    if (family !== 4 && family !== 6) continue;
    const text = family === 6 ? `[${ip}]:${port}` : `${ip}:${port}`;
    const known = families.find((candidate) => candidate.family === family);
    if (known === undefined) families.push({ family, addresses: [text] });
    else known.addresses.push(text);
  }
  const chosen = families.filter(({ family }) => family === wanted);
  return chosen.length > 0 ? chosen : families;
}

/** True when calls to this cluster are not encrypted: only a mock cluster without an authority. */
export function isPlain(profile: Pick<Profile, "ca" | "mock">): boolean {
  return profile.mock && profile.ca === undefined;
}

/** Throws USAGE for a real ID token on an unencrypted network; a mock token is no secret. */
export function requireSafeForToken(
  profile: Pick<Profile, "ca" | "mock">,
  address: string,
  token: string,
): void {
  if (!isPlain(profile) || isLoopback(address) || token.startsWith(MOCK_PREFIX)) return;
  throw new ClientError(
    "USAGE",
    `your ID token is not sent to ${address}, since the connection is not encrypted`,
    {
      todo: "Name the authority of the cluster with --ca, or sign in with --mock.",
    },
  );
}

/** Opens a channel to one host's addresses, or to several servers, `host` first; connects on first use. */
export function openChannel(
  profile: Pick<Profile, "ca" | "mock" | "certificate">,
  address: string,
  addresses: readonly string[],
): GrpcChannel {
  const { host } = splitAddress(address);
  const isOneServer = addresses.length === 1 || !addresses.includes(address);
  const tls = {
    ...(profile.ca === undefined ? {} : { ca: profile.ca }),
    ...profile.certificate,
    // A numeric address must not change the name in the certificate. Several servers each have their own.
    ...(isIP(host) === 0 && isOneServer ? { serverName: host } : {}),
  };
  const options: GrpcChannelOptions = { addresses, keepalive: KEEPALIVE, backoff: { maxMs: 2_000 } };
  return new GrpcChannel(isPlain(profile) ? options : { ...options, tls });
}
