// Opens the notices to users and feeds them with polls; the gathering of audit lines tells them of sign-ins.
import { USER_NOTICES_FILE, UserNotices } from "#console/alerts/user-notices.ts";
import type { ClusterState } from "#console/cluster/cluster-state.ts";
import type { HomeNodes } from "#console/cluster/home-nodes.ts";
import type { AlertService } from "./alert-service.ts";
import type { ConsoleOptions } from "./console-options.ts";

/** What feeds them. */
export interface UserNoticeFeedDeps {
  readonly cluster: Pick<ClusterState, "onPoll">;
  readonly homes: Pick<HomeNodes, "ofUser">;
  readonly alerts: Pick<AlertService, "wasReset">;
}

/** Opens them, deferred on `ends`; undefined where the settings name no receiver of theirs. */
export async function openUserNotices(
  { clock, log, directory, dataFolder, notices }: ConsoleOptions,
  { cluster, homes, alerts }: UserNoticeFeedDeps,
  ends: AsyncDisposableStack,
): Promise<UserNotices | undefined> {
  const userNotices = await UserNotices.open({
    dataFolder,
    settings: notices?.userNotices,
    homeOf: (owner) => homes.ofUser(owner),
    store: directory,
    clock,
    log,
  });
  if (userNotices === undefined) return undefined;
  ends.defer(() => userNotices.close());
  ends.defer(
    cluster.onPoll(({ node, reading }) => {
      if (reading !== undefined) userNotices.polled(node.id, reading);
    }),
  );
  if (userNotices.setAsideAs !== undefined) alerts.wasReset(USER_NOTICES_FILE, userNotices.setAsideAs);
  return userNotices;
}
