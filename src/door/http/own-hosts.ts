// The names under which a door is known: any other host is refused, so that no name can be bound to it anew.
import { GroveError } from "#base/errors.ts";
import { formatHostPort, type HostPort } from "#base/node-id.ts";

/** A door's own names, and the address that people are given. */
export class OwnHosts {
  /** Without a slash at the end. */
  readonly publicUrl: string;
  /** Hosts in lower case, with and without the scheme's usual port. */
  readonly all: ReadonlySet<string>;

  constructor(publicUrl: string | undefined, listen: HostPort, isTls: boolean) {
    const scheme = isTls ? "https" : "http";
    const url = readPublicUrl(publicUrl ?? `${scheme}://${formatHostPort(reachable(listen))}`);
    this.publicUrl = url.origin;
    const hosts = new Set<string>();
    add(hosts, url.hostname, url.port, url.protocol === "https:");
    for (const name of ["localhost", "127.0.0.1", "[::1]"]) add(hosts, name, String(listen.port), isTls);
    this.all = hosts;
  }

  /** Whether a Host header, an authority or the host of an address is one of this door's. */
  has(host: string | undefined): boolean {
    return host !== undefined && this.all.has(host.toLowerCase());
  }
}

/** Throws BAD_ARGUMENT where the text is no address of a server alone. */
function readPublicUrl(text: string): URL {
  const url = URL.parse(text);
  const isPlain = url !== null && url.pathname === "/" && url.search === "" && url.hash === "";
  if (!isPlain || !/^https?:$/u.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new GroveError(
      "BAD_ARGUMENT",
      `${JSON.stringify(text)} is not an address such as https://files.example.net`,
    );
  }
  return url;
}

function add(hosts: Set<string>, name: string, port: string, isTls: boolean): void {
  const usual = isTls ? "443" : "80";
  const isUsual = port === "" || port === usual;
  hosts.add(isUsual ? `${name}:${usual}` : `${name}:${port}`);
  if (isUsual) hosts.add(name);
}

function reachable({ host, port }: HostPort): HostPort {
  return { host: host === "0.0.0.0" || host === "::" ? "localhost" : host, port };
}
