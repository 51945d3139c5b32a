// Tells of clients that show a certificate which is none of this cluster's: users need none, so it is a mistake or a trial (D22).
import type { SecurityEventSink } from "#base/security-event.ts";
import type { Peer, ServerInterceptor } from "#grpc/handler.ts";

/** Reports each such connection once, with its first call; the call itself goes on, since what counts for users is their session. */
export function certificateWatch(onSecurityEvent: SecurityEventSink): ServerInterceptor {
  const told = new WeakSet<Peer>();
  return (context, next) => {
    const { peer } = context;
    if (peer.certificate !== undefined && !peer.certificate.authorized && !told.has(peer)) {
      told.add(peer);
      onSecurityEvent({ type: "unknown_cert", ipSeen: peer.address });
    }
    return next();
  };
}
