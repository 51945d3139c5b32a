// Planted bugs for the rig of anonymous visitors.
import type { PlantedBug } from "#prove/rig.ts";

/** Each shows visitors something that depends on users. */
export const anonymousBugs: readonly PlantedBug[] = [
  {
    name: "redaction-by-deletion",
    is: "a node's public form is the operators' with fields taken away, and one was forgotten",
    rigs: ["anonymous"],
    edits: [
      {
        file: "src/console/cluster/node-view.ts",
        from: "  const reading = node.lastGood;\n  return {\n    id: node.id,",
        to: `  const reading = node.lastGood;
  const { address, locked_by, boot_id, users_assigned_count, active_users, trash_bytes, staging_bytes, quota_drift_bytes, poll_error, ...left } = operatorPartOf(node);
  return {
    ...left,
    id: node.id,`,
      },
    ],
  },
  {
    name: "visitors-count-quota-alerts",
    is: "the visitors' count of alerts includes those about users",
    rigs: ["anonymous"],
    edits: [
      {
        file: "src/console/alerts/alert-list.ts",
        from: 'if (audience === "visitor" && !isPublic(alert)) {',
        to: 'if (audience === "visitor" && !isPublic(alert) && ALERT_VISIBILITY[alert.type].hidden !== "users") {',
      },
      {
        file: "src/console/alerts/alert-list.ts",
        from: "import { isCounted, isPublic } from",
        to: "import { ALERT_VISIBILITY, isCounted, isPublic } from",
      },
    ],
  },
  {
    name: "alert-details-unfiltered",
    is: "an alert about a node tells visitors all of its details",
    rigs: ["anonymous"],
    edits: [
      {
        file: "src/console/alerts/alert-record.ts",
        from: "  return frameOf(hidesValue === true ? rest : alert, detail, undefined);",
        to: "  return frameOf(hidesValue === true ? rest : alert, alert.detail ?? {}, undefined);",
      },
    ],
  },
  {
    name: "one-numbering-of-events",
    is: "events of both audiences are numbered together, so that visitors can count those that they do not see",
    rigs: ["anonymous"],
    edits: [
      {
        file: "src/console/live/hub.ts",
        from: "if (event.public !== undefined) this.#tell(this.#streams.visitor, type, event.public);",
        to: "if (event.public !== undefined) this.#tell(this.#streams.visitor, type, event.public);\n    else this.#streams.visitor.passing(type, event.alert);",
      },
    ],
  },
];
