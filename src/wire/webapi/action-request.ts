// The request of an action: seven kinds with fields, and the specification's aliases (spec 2.9, 4.7; D7).
import { z } from "zod";
import {
  ACTION_NODES_MAX,
  CUSTOM_LIMIT_MAX_SECONDS,
  CUSTOM_LIMIT_SECONDS,
  LOG_LINES_DEFAULT,
  LOG_LINES_MAX,
  LOG_LINES_MIN,
} from "#base/limits.ts";
import { branchName } from "./branch-name.ts";
import { makeTarget } from "./make-target.ts";

/** Size of a custom command (decision D17): 8 KiB. */
export const CUSTOM_COMMAND_MAX_BYTES = 8_192;

/** Kinds of actions: ActionPull to ActionCustom (spec 4.7). */
export const ACTION_KINDS = ["pull", "build", "restart", "reboot", "apt", "logs", "custom"] as const;

/** One of the kinds. */
export type ActionKind = (typeof ACTION_KINDS)[number];

/** The services of the specification; their units are `svc-<service>`. */
export const SERVICES = ["fileserver", "metaserver", "admin"] as const;

/** One of the services. */
export type Service = (typeof SERVICES)[number];

/** Ways to restart a service: by systemd, or as a program (spec 2.9). */
export const RESTART_MODES = ["systemctl", "binary"] as const;
const RESTART_TARGETS = [...SERVICES, "all"] as const;
const APT_MODES = ["update_upgrade", "update_only"] as const;

/** Ids of nodes, as they register. */
const NODE_ID = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const IDEMPOTENCY_KEY = /^[A-Za-z0-9._-]{1,128}$/;

/** The id of a node. */
export const nodeId: z.ZodString = z.string().regex(NODE_ID, "not the id of a node");
/** Distinct nodes, or all that support the action. */
export const nodeIds: z.ZodUnion<[z.ZodLiteral<"all">, z.ZodArray<z.ZodString>]> = z.union([
  z.literal("all"),
  z
    .array(nodeId)
    .min(1)
    .max(ACTION_NODES_MAX)
    .refine((ids) => new Set(ids).size === ids.length, "a node is there twice"),
]);
/** A repeated key of the same operator means the same request. */
export const idempotencyKey: z.ZodString = z.string().regex(IDEMPOTENCY_KEY);
const restartMode = z.enum(RESTART_MODES);
const targetService = z.enum(RESTART_TARGETS);
const aptMode = z.enum(APT_MODES);
const timeoutSeconds = z.int().min(1).max(CUSTOM_LIMIT_MAX_SECONDS);
const command = z
  .string()
  .min(1)
  .refine((text) => new TextEncoder().encode(text).length <= CUSTOM_COMMAND_MAX_BYTES, "longer than 8 KiB")
  .refine((text) => !text.includes("\0") && text.trim() !== "", "nothing that a shell can run");

const strategy = z.strictObject({
  mode: z.enum(["parallel", "rolling"]),
  max_parallel: z.int().min(1).max(ACTION_NODES_MAX).optional(),
  stop_on_failure: z.boolean().optional(),
  health_gate_seconds: z.int().min(0).max(600).optional(),
});

/** All fields; a later check allows them by action. */
const fields = z.strictObject({
  action: z.enum(ACTION_KINDS),
  nodes: nodeIds,
  restart_mode: restartMode.optional(),
  RestartMode: restartMode.optional(),
  target_service: targetService.optional(),
  TargetService: targetService.optional(),
  apt_mode: aptMode.optional(),
  AptMode: aptMode.optional(),
  branch: branchName.optional(),
  make_target: makeTarget.optional(),
  command: command.optional(),
  timeout_seconds: timeoutSeconds.optional(),
  TimeoutSeconds: timeoutSeconds.optional(),
  lines: z.int().min(LOG_LINES_MIN).max(LOG_LINES_MAX).optional(),
  service: z.enum(SERVICES).optional(),
  dry_run: z.boolean().default(false),
  comment: z.string().max(1024).optional(),
  idempotency_key: idempotencyKey.optional(),
  strategy: strategy.optional(),
});

type Fields = z.infer<typeof fields>;
type Alias = "RestartMode" | "TargetService" | "AptMode" | "TimeoutSeconds";
type Optional = Exclude<
  keyof Fields,
  "action" | "nodes" | "dry_run" | "comment" | "idempotency_key" | "strategy" | Alias
>;

/** The specification's names of fields, and ours. */
const ALIASES = {
  RestartMode: "restart_mode",
  TargetService: "target_service",
  AptMode: "apt_mode",
  TimeoutSeconds: "timeout_seconds",
} as const satisfies Record<Alias, Optional>;

/** Allowed fields by action; others are refused rather than ignored. */
const FIELDS_OF: Readonly<Record<ActionKind, readonly Optional[]>> = {
  pull: ["branch"],
  build: ["make_target"],
  restart: ["restart_mode", "target_service"],
  reboot: [],
  apt: ["apt_mode"],
  logs: ["service", "lines"],
  custom: ["command", "timeout_seconds"],
};

/** Required fields by action, so that a missing word never restarts or pulls the wrong thing. */
const NEEDED: Readonly<Record<ActionKind, readonly Optional[]>> = {
  pull: ["branch"],
  build: [],
  restart: ["target_service"],
  reboot: [],
  apt: [],
  logs: ["service"],
  custom: ["command"],
};

/** Defaults (spec 2.9). */
const DEFAULTS: { readonly [Kind in ActionKind]: Partial<Pick<Fields, Optional>> } = {
  pull: {},
  build: { make_target: "build" },
  restart: { restart_mode: "systemctl" },
  reboot: {},
  apt: { apt_mode: "update_upgrade" },
  logs: { lines: LOG_LINES_DEFAULT },
  custom: { timeout_seconds: CUSTOM_LIMIT_SECONDS },
};

type Common = Pick<Fields, "nodes" | "dry_run" | "comment" | "idempotency_key" | "strategy">;
type Has<Name extends Optional> = { [Each in Name]-?: NonNullable<Fields[Each]> };

/** An action in full: every field of its kind, with defaults and without aliases. */
export type ActionRequest = Common &
  (
    | ({ action: "pull" } & Has<"branch">)
    | ({ action: "build" } & Has<"make_target">)
    | ({ action: "restart" } & Has<"restart_mode" | "target_service">)
    | { action: "reboot" }
    | ({ action: "apt" } & Has<"apt_mode">)
    | ({ action: "logs" } & Has<"service" | "lines">)
    | ({ action: "custom" } & Has<"command" | "timeout_seconds">)
  );

/** POST /api/actions/execute and /run: the input, and the full request that it means. */
export const actionRequest: z.ZodType<ActionRequest, z.input<typeof fields>> = fields
  .superRefine((request, context) => {
    const refuse = (name: string, message: string): void => {
      context.addIssue({ code: "custom", path: [name], message });
    };
    for (const [alias, name] of Object.entries(ALIASES) as [Alias, Optional][]) {
      if (request[alias] !== undefined && request[name] !== undefined) {
        refuse(alias, `${alias} and ${name} are the same; give one`);
      }
    }
    const given = namedAlike(request);
    for (const name of ALL) {
      if (given[name] !== undefined && !FIELDS_OF[request.action].includes(name)) {
        refuse(name, `${name} does not go with ${request.action}`);
      }
    }
    for (const name of NEEDED[request.action]) {
      if (given[name] === undefined) refuse(name, `${request.action} needs ${name}`);
    }
  })
  .transform((request) => {
    const { action, nodes, dry_run, comment, idempotency_key, strategy: how } = request;
    const common = { action, nodes, dry_run, comment, idempotency_key, strategy: how };
    const all = { ...common, ...DEFAULTS[action], ...given(namedAlike(request)) };
    // Checked above, field by field.
    return given(all) as unknown as ActionRequest;
  });

const ALL: readonly Optional[] = [...new Set(Object.values(FIELDS_OF).flat())];

function namedAlike(request: Fields): Partial<Pick<Fields, Optional>> {
  const named: Record<string, unknown> = {};
  for (const name of ALL) named[name] = request[name];
  for (const [alias, name] of Object.entries(ALIASES) as [Alias, Optional][]) named[name] ??= request[alias];
  return named;
}

function given<T extends object>(members: T): Partial<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Partial<T>;
}
