// The route by which a door finds the FileServer of a link.
import { GroveError } from "#base/errors.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { doorSpeakerFor } from "./door-speaker.ts";
import type { NodeSpeakerDeps } from "./node-speaker.ts";

/** Ids of roots are ULIDs. */
const ROOT_ID = /^[0-9A-HJKMNP-TV-Z]{26}$/u;

/** Makes the handler. A root's id tells where the root lives, and nothing of whose it is. */
export function linkRoutes(
  deps: NodeSpeakerDeps & { readonly directory: Directory },
): Pick<ServiceHandlers<typeof MetaServer>, "locateRoot"> {
  return {
    async locateRoot({ rootId }, context) {
      doorSpeakerFor(context, deps);
      const root = ROOT_ID.test(rootId) ? await deps.directory.findRootById(rootId) : undefined;
      if (root === undefined) throw new GroveError("NO_SUCH_PATH", "there is no such root");
      const { fsId, address } = root;
      if (address === "") {
        throw new GroveError(
          "STARTING",
          "the FileServer that holds this root has not come back yet; try again",
        );
      }
      return { fsId, address };
    },
  };
}
