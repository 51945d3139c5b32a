// A client of all MetaServers that a node knows: calls go to the last one that helped, then to the others.

import { Code, type StatusError } from "#wire/framing/status.ts";
import { type Client, createClient, type GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { reasonOf } from "./refusal-reason.ts";

type AnyMethod = (request: object, options?: object) => Promise<unknown>;

/** Makes the client. Every call of the MetaServer may be repeated, so calls with an unknown outcome are. */
export function anyMetaServer(channel: GrpcChannel): Client<typeof MetaServer> {
  const methods = Object.entries(createClient(MetaServer, channel) as unknown as Record<string, AnyMethod>);
  const client = methods.map(([name, method]): [string, AnyMethod] => [
    name,
    (request, options) => channel.onAnyServer(() => method(request, options), isElsewhere),
  ]);
  return Object.fromEntries(client) as unknown as Client<typeof MetaServer>;
}

/** True when another MetaServer may help: this one is silent, without a store, or without an authority. */
function isElsewhere(error: StatusError): boolean {
  const reason = reasonOf(error);
  if (reason === "STORE_UNAVAILABLE" || reason === "OVERLOADED" || error.code === Code.UNIMPLEMENTED)
    return true;
  return reason === undefined && (error.code === Code.UNAVAILABLE || error.code === Code.DEADLINE_EXCEEDED);
}
