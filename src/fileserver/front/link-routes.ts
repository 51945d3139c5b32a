// The gRPC routes of an owner's links.
import { currentCaller } from "#fileserver/operations/caller.ts";
import type { FileService } from "#fileserver/operations/file-service.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import type { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** The handlers of links. */
export function linkRoutes({
  links,
}: FileService): Pick<ServiceHandlers<typeof FileServer>, "createLink" | "listLinks" | "revokeLink"> {
  return {
    createLink: (request, context) => links.create(currentCaller(context), request),
    listLinks: (request, context) => links.list(currentCaller(context), request),
    revokeLink: (request, context) => links.revoke(currentCaller(context), request),
  };
}
