// Maintenance of a node without notifications.
import assert from "node:assert/strict";
import type { NodeMaintenance } from "#wire/webapi/maintenance.ts";
import type { Silence } from "#wire/webapi/notification.ts";
import type { Job } from "./job.ts";

interface MaintenanceList {
  readonly maintenance: readonly NodeMaintenance[];
}

/** One step mutes the node and keeps new users away; a silence takes a duration in words. */
export const quietPlease: Job = {
  title: "a node goes into maintenance in one step and out again, and a silence lasts as long as people say",
  async run(site) {
    const path = "/api/maintenance/n1";
    await site.ask(path, "PUT", { duration: "2h", comment: "a new fan" });
    const { maintenance } = await site.ask<MaintenanceList>("/api/maintenance");
    const [only] = maintenance;
    assert.deepEqual(
      [maintenance.length, only?.node_id, only?.comment, only?.placement_paused],
      [1, "n1", "a new fan", true],
    );
    assert.equal((only?.ends_at ?? 0) - (only?.starts_at ?? 0), 7_200);
    await site.untilScreen("a node in maintenance", ({ nodes }) =>
      nodes.some(({ id, maintenance_until: until }) => id === "n1" && until === only?.ends_at),
    );
    await site.ask(path, "DELETE");
    assert.deepEqual((await site.ask<MaintenanceList>("/api/maintenance")).maintenance, []);
    const matchers = [{ name: "node_id", value: "n1", is_regex: false }];
    const silence = await site.ask<Silence>("/api/silences", "POST", {
      matchers,
      duration: "until tomorrow 08:00",
      time_zone: "Europe/Berlin",
      comment: "the fan is still loud",
    });
    assert.ok(silence.ends_at > silence.starts_at && silence.ends_at <= silence.starts_at + 32 * 3_600);
    await site.ask(`/api/silences/${silence.id}`, "DELETE");
  },
};
