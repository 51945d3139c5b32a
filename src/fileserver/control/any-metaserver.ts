// A client of all MetaServers that a node knows: each call goes to the one that helped last, and on to the others when it cannot.

import { Code, type StatusError } from "#wire/framing/status.ts";
import { type Client, createClient, type GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { reasonOf } from "./refusal-reason.ts";

type AnyMethod = (request: object, options?: object) => Promise<unknown>;

/** Makes the client. Every call of the MetaServer may be repeated, so that one whose outcome is not known is. */
export function anyMetaServer(channel: GrpcChannel): Client<typeof MetaServer> {
  const methods = Object.entries(createClient(MetaServer, channel) as unknown as Record<string, AnyMethod>);
  const client = methods.map(([name, method]): [string, AnyMethod] => [
    name,
    (request, options) => channel.onAnyServer(() => method(request, options), isElsewhere),
  ]);
  return Object.fromEntries(client) as unknown as Client<typeof MetaServer>;
}

/** True when another MetaServer may help: this one does not answer, has no store, or no authority that signs certificates. */
function isElsewhere(error: StatusError): boolean {
  const reason = reasonOf(error);
  if (reason === "STORE_UNAVAILABLE" || reason === "OVERLOADED" || error.code === Code.UNIMPLEMENTED)
    return true;
  return reason === undefined && (error.code === Code.UNAVAILABLE || error.code === Code.DEADLINE_EXCEEDED);
}
