// Chooses the demonstration's ports: the last ones while they are free, else the defaults or the next.

import { CONSOLE_PORT, DOOR_PORT, FILESERVER_PORT, METASERVER_PORT } from "#base/limits.ts";
import { METRICS_PORT_OFFSET, metricsPortOf } from "#base/metrics-port.ts";
import { findFreePort, findFreePortPairs, isPortFree } from "#os/listen-ports.ts";
import type { DemoPorts } from "./demo-state.ts";

/** Default HTTP port of the demonstration's identity provider (decision D23). */
const DEMO_IDP_PORT = 8_090;

/** All ports of a run. */
export type ChosenPorts = DemoPorts & { readonly console: number; readonly door: number };

/**
 * Chooses all ports of a run, none of `others`. Clients keep addresses, so a restart keeps the ports where it
 * can.
 */
export async function choosePorts(
  nodeCount: number,
  last: DemoPorts | undefined,
  others: ReadonlySet<number> = new Set(),
): Promise<ChosenPorts> {
  const taken = new Set(others);
  const keep = async (port: number | undefined, offsets: readonly number[]): Promise<number | undefined> => {
    if (port === undefined) return undefined;
    for (const offset of offsets) {
      if (taken.has(port - offset) || !(await isPortFree(port - offset))) return undefined;
    }
    for (const offset of offsets) taken.add(port - offset);
    return port;
  };
  // Kept ports are settled first, so that no moved one takes a kept one's place.
  const kept = {
    idp: await keep(last?.idp, [0]),
    metaserver: await keep(last?.metaserver, [0, METRICS_PORT_OFFSET]),
    console: await keep(last?.console, [0]),
    door: await keep(last?.door, [0]),
    nodes: [] as (number | undefined)[],
  };
  for (let index = 0; index < nodeCount; index++) {
    kept.nodes.push(await keep(last?.nodes[index], [0, METRICS_PORT_OFFSET]));
  }
  const find = async (from: number): Promise<number> => {
    const port = await findFreePort(from, { taken });
    taken.add(port);
    return port;
  };
  const findPair = async (from: number): Promise<number> => {
    const [pair] = await findFreePortPairs(from, 1, { taken });
    const port = pair?.grpc ?? from;
    taken.add(port).add(metricsPortOf(port));
    return port;
  };
  const idp = kept.idp ?? (await find(DEMO_IDP_PORT));
  const metaserver = kept.metaserver ?? (await findPair(METASERVER_PORT));
  const console = kept.console ?? (await find(CONSOLE_PORT));
  const door = kept.door ?? (await find(DOOR_PORT));
  const missing = kept.nodes.filter((port) => port === undefined).length;
  const pairs = await findFreePortPairs(FILESERVER_PORT, missing, { taken });
  const nodes = kept.nodes.map((port) => port ?? pairs.shift()?.grpc ?? FILESERVER_PORT);
  return { idp, metaserver, console, door, nodes };
}
