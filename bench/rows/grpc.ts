// The gRPC room against its base: the share of node:http2's speed left after framing, status and limits.
import { connectedPair, type Security } from "#bench/pair.ts";
import type { Group, RatioRow } from "#bench/row.ts";

const STREAM_BYTES = 128 * 4_000_000;
const CALLS = 8_000;
const IN_FLIGHT = 64;
const PAYLOAD_BYTES = 100;

const streamRow = (direction: "up" | "down", security: Security): RatioRow => ({
  name: `gRPC room, 4 MB messages, stream ${direction}, ${security}`,
  against: "the same bytes over raw node:http2",
  atLeast: 0.8,
  rate: "MiB/s",
  async sides(lab) {
    const room = await connectedPair(lab, "room", security);
    const raw = await connectedPair(lab, "raw", security);
    return {
      ours: () => room.measure(direction, STREAM_BYTES),
      theirs: () => raw.measure(direction, STREAM_BYTES),
    };
  },
});

const unaryRow = (security: Security): RatioRow => ({
  name: `gRPC room, unary, 64 in flight, ${security}`,
  against: "raw node:http2, request and reply of the same size",
  atLeast: 0.7,
  rate: "calls/s",
  async sides(lab) {
    const room = await connectedPair(lab, "room", security);
    const raw = await connectedPair(lab, "raw", security);
    const bytes = await room.measure("unaryBytes", PAYLOAD_BYTES);
    return {
      ours: () => room.measure("unary", { calls: CALLS, inFlight: IN_FLIGHT, payloadBytes: PAYLOAD_BYTES }),
      theirs: () => raw.measure("unary", { calls: CALLS, inFlight: IN_FLIGHT, bytes }),
    };
  },
});

export const grpc: Group = {
  name: "grpc",
  rows: () =>
    (["plain", "TLS"] as const).flatMap((security) => [
      streamRow("up", security),
      streamRow("down", security),
      unaryRow(security),
    ]),
};
