// The routes by which people turn notices about their own quota, trash and sign-ins off and on.
import type { Logger } from "#base/log.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import type { CallContext, ServiceHandlers } from "#wire/grpc/handler.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { idTokenOf } from "./call-gate.ts";
import { admitPerson, type PersonEntryDeps } from "./subject-gate.ts";

/** Dependencies of the routes. */
export interface NoticeRoutesDeps extends PersonEntryDeps {
  readonly directory: Pick<Directory, "noticesOff" | "setNoticesOff">;
  readonly tokenVerifier: TokenVerifier;
  readonly log: Logger;
}

/** The handlers. */
export type NoticeRoutes = Pick<ServiceHandlers<typeof MetaServer>, "getNotices" | "setNotices">;

/** Makes the handlers. */
export function noticeRoutes(deps: NoticeRoutesDeps): NoticeRoutes {
  const { directory, log } = deps;
  return {
    async getNotices(_request, context) {
      return { off: await directory.noticesOff(await userOf(context, deps)) };
    },

    async setNotices({ off }, context) {
      const user = await userOf(context, deps);
      await directory.setNoticesOff(user, off);
      log.info("user_notices_set", { user, off, peer: context.peer.address });
      return {};
    },
  };
}

/** The user behind the ID token; an app password is none. Throws why it does not count. */
async function userOf(context: CallContext, deps: NoticeRoutesDeps): Promise<string> {
  const verified = await deps.tokenVerifier.verify(idTokenOf(context), context.peer.address);
  await admitPerson(verified, deps);
  return verified.identity.username;
}
