// Finds ports for the demonstration: those it had last time while they are free, else the default ones or the next.
import { DEMO_IDP_PORT, FILESERVER_PORT, METASERVER_PORT, METRICS_PORT_OFFSET } from "#base/limits.ts";
import { findFreePort, findFreePortPairs, isPortFree } from "#os/listen-ports.ts";
import type { DemoPorts } from "./demo-state.ts";

/** Chooses all ports of a run; clients keep addresses, so that a restart changes none without need. */
export async function choosePorts(nodeCount: number, last: DemoPorts | undefined): Promise<DemoPorts> {
  const taken = new Set<number>();
  const one = async (from: number, lastPort: number | undefined): Promise<number> => {
    const isLastFree = lastPort !== undefined && !taken.has(lastPort) && (await isPortFree(lastPort));
    const port = isLastFree ? lastPort : await findFreePort(from, { taken });
    taken.add(port);
    return port;
  };
  const idp = await one(DEMO_IDP_PORT, last?.idp);
  const metaserver = await one(METASERVER_PORT, last?.metaserver);
  const nodes: number[] = [];
  for (let index = 0; index < nodeCount; index++) {
    const lastPort = last?.nodes[index];
    const lastMetrics = (lastPort ?? 0) - METRICS_PORT_OFFSET;
    const isLastFree =
      lastPort !== undefined &&
      !taken.has(lastPort) &&
      !taken.has(lastMetrics) &&
      (await isPortFree(lastPort)) &&
      (await isPortFree(lastMetrics));
    const [pair] = isLastFree ? [] : await findFreePortPairs(FILESERVER_PORT, 1, { taken });
    const port = pair?.grpc ?? lastPort ?? FILESERVER_PORT;
    taken.add(port).add(port - METRICS_PORT_OFFSET);
    nodes.push(port);
  }
  return { idp, metaserver, nodes };
}
