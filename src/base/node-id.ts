// Rules for node ids and addresses, which appear in certificates, file names, URLs and on screens.

import { GroveError } from "./errors.ts";
import { METRICS_PORT_OFFSET } from "./metrics-port.ts";

const NODE_ID = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const HOST_NAME =
  /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;
const PORT_MAX = 65_535;

/** Reserved: interfaces mean all nodes together by it, as in GET /api/history/cluster (spec 4.1). */
export const RESERVED_NODE_ID = "cluster";

/** A host and a port; an IPv6 host has no brackets. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/**
 * Returns a node's id: one DNS label of lower-case letters, digits and hyphens, since its certificate names
 * `<id>.cluster.local` (D20). Throws BAD_ARGUMENT.
 */
export function checkedNodeId(fsId: string): string {
  if (fsId === RESERVED_NODE_ID) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `no node can have the id "${RESERVED_NODE_ID}", which stands for all of them in the console; give it another with -id`,
    );
  }
  if (NODE_ID.test(fsId)) return fsId;
  throw new GroveError(
    "BAD_ARGUMENT",
    "a node id has 1 to 63 lower-case letters, digits and hyphens, with no hyphen at either end",
  );
}

/** Splits `host:port` or `[ipv6]:port`. Throws BAD_ARGUMENT. Ports are 1 to 65535; 0 only with allowZero. */
export function parseHostPort(text: string, options: { readonly allowZero?: boolean } = {}): HostPort {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^[\]:]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  const isHost = match?.[1] !== undefined || (host !== undefined && HOST_NAME.test(host));
  if (host === undefined || !isHost || port > PORT_MAX || (port === 0 && options.allowZero !== true)) {
    throw new GroveError("BAD_ARGUMENT", "an address is host:port, with an IPv6 address in brackets");
  }
  return { host, port };
}

/** Writes `host:port`, with brackets around an IPv6 address. */
export function formatHostPort(address: HostPort): string {
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return `${host}:${address.port}`;
}

/**
 * Checks a FileServer's advertised gRPC address: its port is above 41000, the distance to the metrics port
 * (T6).
 */
export function checkedFileServerAddress(text: string): string {
  const address = parseHostPort(text);
  if (address.port > METRICS_PORT_OFFSET) return formatHostPort(address);
  throw new GroveError(
    "BAD_ARGUMENT",
    `a FileServer's gRPC port is above ${METRICS_PORT_OFFSET}, because its metrics port is that much lower`,
  );
}
