// Opens what a FileServer needs for doors: who they are, which tickets count, and the sessions they open.
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import { MetaServerNews } from "#fileserver/control/metaserver-news.ts";
import type { NodeCertificate } from "#fileserver/control/node-certificate.ts";
import { DoorPeers } from "#fileserver/doors/door-peer.ts";
import { DoorSessions } from "#fileserver/doors/door-sessions.ts";
import type { FileServiceDeps } from "#fileserver/operations/file-service.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** The parts, as the operations take them. */
export type DoorParts = Pick<FileServiceDeps, "doorPeers" | "doors" | "mock" | "nodeId" | "ticketNews">;

/** Opens them; the connections to MetaServers are made when the first door comes. */
export function openDoors(
  options: { readonly id: string; readonly metaservers: readonly string[]; readonly mock: boolean },
  deps: {
    readonly certificate: NodeCertificate | undefined;
    readonly clock: Clock;
    readonly random: Random;
    readonly onSecurityEvent: SecurityEventSink;
    readonly log: Logger;
  },
  closers: AsyncDisposableStack,
): DoorParts {
  const { id: nodeId, metaservers, mock } = options;
  const { certificate, clock, log } = deps;
  const channels = metaservers.map((address) => {
    const tls = certificate === undefined ? {} : { tls: certificate.material };
    return new GrpcChannel({ addresses: [address], ...tls, clock });
  });
  certificate?.onChange((tls) => {
    for (const channel of channels) channel.updateTls(tls);
  });
  const clients = channels.map((channel) => createClient(MetaServer, channel));
  const news = clients.length === 0 ? undefined : new MetaServerNews({ clients, fsId: nodeId, clock, log });
  const doors = new DoorSessions({ ...deps, news });
  closers.defer(async () => {
    doors.stop();
    for (const channel of channels) channel.close();
    await news?.close();
  });
  return { doorPeers: new DoorPeers(clock, mock), doors, mock, nodeId, ticketNews: news };
}
