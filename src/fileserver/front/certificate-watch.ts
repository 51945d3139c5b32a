// Raises a security event for client certificates from another authority: users need none (D22).
import type { Clock } from "#base/clock.ts";
import { IP_MISMATCH_EVENT_INTERVAL_MS } from "#base/limits.ts";
import { networkOf } from "#base/network.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import type { Peer } from "#wire/grpc/handler.ts";

/** Reports such a certificate once in ten minutes per network; the call goes on by its session. */
export function certificateWatch(onSecurityEvent: SecurityEventSink, clock: Clock): (peer: Peer) => void {
  const told = new WeakSet<Peer>();
  const events = new SlidingWindow(clock, { count: 1, windowMs: IP_MISMATCH_EVENT_INTERVAL_MS });
  return (peer) => {
    const { certificate, address } = peer;
    if (certificate === undefined || certificate.authorized || told.has(peer)) return;
    told.add(peer);
    if (events.take(`${certificate.fingerprint256} ${networkOf(address)}`) > 0) return;
    onSecurityEvent({ type: "unknown_cert", ipSeen: address });
  };
}
