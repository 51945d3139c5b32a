// The routes about decisions on users: administrators decide, nodes exchange theirs with the store.
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { USER_STATES_PER_MESSAGE } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { canonicalUsername } from "#base/names.ts";
import { firstOfMessage } from "#base/user-state.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { memberTest } from "#security/policy/group.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import type { UserState as UserStateMessage } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { requestedUserState, userStateMessage, userStateOf } from "#wire/proto/user-state-message.ts";
import { type AdministratorDeps, requireAdministrator } from "./administrator.ts";
import type { GroupGate } from "./group-gate.ts";
import { type NodeSpeakerDeps, speakerFor } from "./node-speaker.ts";
import { epochOf } from "./registration-message.ts";
import type { UserStateGate } from "./user-state-gate.ts";

/** Dependencies of the routes. */
export interface UserStateRoutesDeps extends AdministratorDeps, NodeSpeakerDeps {
  readonly userStates: UserStateGate;
  readonly groups: Pick<GroupGate, "heard" | "roleOf">;
  readonly directory: Pick<Directory, "nodes" | "requireNode">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The handlers. */
export type UserStateRoutes = Pick<
  ServiceHandlers<typeof MetaServer>,
  "exchangeUserStates" | "getUserStates" | "keepUserState" | "listFileServers"
>;

/** Makes the handlers. */
export function userStateRoutes(deps: UserStateRoutesDeps): UserStateRoutes {
  const { userStates, groups, directory, clock, log } = deps;
  const { states } = userStates;
  return {
    async exchangeUserStates(request, context) {
      const speaker = speakerFor(request.fsId, context, deps);
      await directory.requireNode({ fsId: request.fsId, epoch: epochOf(request.epoch), speaker });
      if (request.states.length > USER_STATES_PER_MESSAGE) {
        throw new GroveError("BAD_ARGUMENT", `at most ${USER_STATES_PER_MESSAGE} decisions in one message`);
      }
      const told = states.news(request.states.map(userStateOf));
      await userStates.merge(told);
      for (const { username, disabled, version } of told) {
        log.info("user_state_learned", { user: username, disabled, version, node: request.fsId });
      }
      return pageOf(request.after);
    },

    async listFileServers(_request, context) {
      await requireAdministrator(context, deps);
      const nodes = await directory.nodes();
      return { servers: nodes.map(({ fsId, name, address, live }) => ({ fsId, name, address, live })) };
    },

    async keepUserState(request, context) {
      const setBy = await requireAdministrator(context, deps);
      const requested = requestedUserState({
        message: request.state,
        setBy,
        nowMs: clock.wallMs(),
        known: (username) => states.find(username),
        isMember: memberTest(groups),
      });
      if (requested.disabled && requested.username === setBy) {
        throw new GroveError(
          "BAD_ARGUMENT",
          "nobody locks themselves out; another administrator or the password can",
        );
      }
      await userStates.merge([requested]);
      const state = states.find(requested.username) ?? requested;
      const { username, disabled, version, reason } = state;
      log.info("user_state_set", { user: username, by: setBy, disabled, version, reason });
      return { state: userStateMessage(state), applied: version === requested.version };
    },

    async getUserStates(request, context) {
      await requireAdministrator(context, deps);
      if (request.username === "") return pageOf(request.after);
      const state = states.find(canonicalUsername(request.username));
      return { states: state === undefined ? [] : [userStateMessage(state)], more: false };
    },
  };

  function pageOf(after: string): { states: UserStateMessage[]; more: boolean } {
    const page = states.page(after, USER_STATES_PER_MESSAGE + 1);
    const first = firstOfMessage(page);
    return { states: first.map(userStateMessage), more: page.length > first.length };
  }
}
