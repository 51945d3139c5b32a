// By which names programs ask a listener that only this machine reaches: a browser may come by any other (DNS rebinding).
import { isLoopbackAddress } from "#base/network.ts";
import { type HostPort, parseHostPort } from "#base/node-id.ts";

/** An address, as a Host header has it: no name can be bound to another one. */
const ADDRESS = /^(?:\[[^\]]*\]|\d{1,3}(?:\.\d{1,3}){3})$/;
/** Listeners with these addresses are reached by other machines too. */
const WILDCARDS: readonly string[] = ["0.0.0.0", "::"];

/**
 * Whether a request's Host header may be of a program that means this listener, by the address at which the request
 * came in. The header is missing in HTTP/1.0 alone.
 */
export type KnownHost = (host: string | undefined, at: string | undefined) => boolean;

/** The rule of a listener, whose node may be advertised as host:port. Any host is known where others reach it. */
export function knownHostOf(listen: Pick<HostPort, "host">, advertise: string | undefined): KnownHost {
  if (WILDCARDS.includes(listen.host)) return () => true;
  // Without another address the node is advertised as it listens.
  const advertised = advertise === undefined ? listen.host : parseHostPort(advertise).host;
  const own = ["localhost", advertised.toLowerCase()];
  return (host, at) => {
    // What the listener was given may be a name of this machine.
    if (at !== undefined && !isLoopbackAddress(at.replace(/^::ffff:/, ""))) return true;
    const name = host?.replace(/:\d*$/, "").toLowerCase();
    return name === undefined || ADDRESS.test(name) || own.includes(name);
  };
}
