// Plans each process's command line and environment. Secrets go by environment and files only.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { metricsPortOf } from "#base/metrics-port.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import type { ClusterDocument } from "./cluster-file.ts";
import type { ChosenPorts } from "./demo-ports.ts";
import { ADMIN_EMAIL, adminPasswordHash, type DemoState } from "./demo-state.ts";
import { answersOk, isServing } from "./probe.ts";
import { AUTH_PATH, DISCOVERY_PATH, TOKEN_PATH, TOKENINFO_PATH } from "./provider-paths.ts";
import { issuerOf } from "./provider-settings.ts";
import type { ProcessPlan } from "./supervised-process.ts";

/** Client id of Grove at the demonstration's provider. */
export const DEMO_CLIENT_ID = "grove-demo";

/** Client id of its door there. */
export const DEMO_DOOR_CLIENT_ID = "grove-demo-door";

/** Certificate and key of one server. */
export interface ServerFiles {
  readonly certificatePath: string;
  readonly keyPath: string;
}

/** Certificates of a run; undefined without TLS. */
export interface DemoTls {
  readonly caPath: string;
  readonly caPem: string;
  /** By "metaserver", "door" and node id. */
  readonly files: ReadonlyMap<string, ServerFiles>;
}

/** The inputs of a run's plan. */
export interface DemoPlan {
  readonly folder: string;
  /** Path of the program's entry file for Node. */
  readonly entry: string;
  readonly state: DemoState;
  readonly ports: ChosenPorts;
  readonly reserveBytes: bigint;
  readonly tls: DemoTls | undefined;
  readonly mock: boolean;
  /** Environment that the processes inherit. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Ids of the FileServers, in the order of their start. */
export function nodeIds(plan: DemoPlan): string[] {
  return plan.ports.nodes.map((_port, index) => `node-${index + 1}`);
}

/** Path of the settings that the identity provider reads. */
export const providerSettingsPath = (folder: string): string => join(folder, "idp", "settings.json");

/** The console's address. */
export const consoleUrl = (plan: DemoPlan): string => `http://127.0.0.1:${plan.ports.console}`;

/** The door's address, above /dav/. */
export const doorUrl = (plan: DemoPlan): string => `http://127.0.0.1:${plan.ports.door}`;

/** The processes in the order of their start. */
export function processPlans(plan: DemoPlan): ProcessPlan[] {
  const nodes = nodeIds(plan).map((id, index) => nodePlan(plan, id, plan.ports.nodes[index] ?? 0));
  return [
    ...(plan.mock ? [] : [providerPlan(plan)]),
    metaserverPlan(plan),
    ...nodes,
    consolePlan(plan),
    doorPlan(plan),
  ];
}

/** The identity provider's part of cluster.json. */
export function idpDocument(plan: DemoPlan): ClusterDocument["idp"] {
  if (plan.mock) return null;
  const issuer = issuerOf(plan.ports.idp);
  return {
    issuer,
    client_id: DEMO_CLIENT_ID,
    auth_url: issuer + AUTH_PATH,
    token_url: issuer + TOKEN_PATH,
    tokeninfo_url: issuer + TOKENINFO_PATH,
  };
}

/** Data folder of a FileServer. */
export const nodeFolder = (plan: DemoPlan, id: string): string => join(plan.folder, id);

function providerPlan(plan: DemoPlan): ProcessPlan {
  const program = new URL(ownFile("identity-provider"), import.meta.url);
  return {
    ...common(plan, "idp"),
    args: [...firstArgs(), fileURLToPath(program)],
    env: { ...inherited(plan), GROVE_DEMO_IDP_SETTINGS: providerSettingsPath(plan.folder) },
    isServing: () => answersOk(issuerOf(plan.ports.idp) + DISCOVERY_PATH),
  };
}

function metaserverPlan(plan: DemoPlan): ProcessPlan {
  const address = `127.0.0.1:${plan.ports.metaserver}`;
  return {
    ...common(plan, "metaserver"),
    args: [
      ...firstArgs(),
      plan.entry,
      "metaserver",
      ...flags({ listen: address, advertise: address, data: join(plan.folder, "metaserver") }),
      ...flags({ "door-url": doorUrl(plan) }),
      ...tlsFlags(plan, "metaserver"),
      // It signs the nodes' certificates as an operator's metaserver would: renewals, and joins by token.
      ...(plan.tls === undefined ? [] : flags({ "ca-dir": dirname(plan.tls.caPath) })),
      "--reflection",
    ],
    env: {
      ...inherited(plan),
      ...signInEnv(plan),
      ...(plan.mock ? {} : { IDP_DOOR_CLIENT_ID: DEMO_DOOR_CLIENT_ID }),
      SVC_ADMIN_EMAIL: ADMIN_EMAIL,
      ADMIN_PASSWORD_HASH: adminPasswordHash(plan.state),
    },
    isServing: () => isServing(address, MetaServer.typeName, plan.tls?.caPem),
  };
}

function nodePlan(plan: DemoPlan, id: string, port: number): ProcessPlan {
  const address = `127.0.0.1:${port}`;
  return {
    ...common(plan, id),
    args: [
      ...firstArgs(),
      plan.entry,
      "fileserver",
      ...flags({
        id,
        listen: address,
        advertise: address,
        data: nodeFolder(plan, id),
        metaserver: `127.0.0.1:${plan.ports.metaserver}`,
        reserve: String(plan.reserveBytes),
      }),
      ...tlsFlags(plan, id),
      // The same folder is used with and without TLS.
      ...(plan.tls === undefined ? ["--new-role"] : []),
      "--reflection",
    ],
    env: {
      ...inherited(plan),
      ...signInEnv(plan),
      SVC_ADMIN_EMAIL: ADMIN_EMAIL,
      ADMIN_PASSWORD_HASH: adminPasswordHash(plan.state),
      SVC_METRICS_TOKEN: plan.state.metricsToken,
    },
    isServing: async () =>
      (await isServing(address, FileServer.typeName, plan.tls?.caPem)) &&
      (await answersOk(`http://127.0.0.1:${metricsPortOf(port)}/health`)),
  };
}

function consolePlan(plan: DemoPlan): ProcessPlan {
  return {
    ...common(plan, "console"),
    args: [
      ...firstArgs(),
      plan.entry,
      "admin",
      ...flags({
        listen: `127.0.0.1:${plan.ports.console}`,
        data: join(plan.folder, "console"),
        "allow-nodes": "127.0.0.1",
        metaserver: `127.0.0.1:${plan.ports.metaserver}`,
        meta: `sqlite:${join(plan.folder, "metaserver", "metadata.db")}`,
      }),
      ...(plan.tls === undefined ? [] : flags({ "tls-ca": plan.tls.caPath })),
      ...nodeIds(plan).flatMap((id) => logFlags(plan, id)),
    ],
    env: {
      ...inherited(plan),
      ADMIN_PASSWORD_HASH: adminPasswordHash(plan.state),
      SVC_METRICS_TOKEN: plan.state.metricsToken,
    },
    isServing: () => answersOk(`${consoleUrl(plan)}/health`),
  };
}

function doorPlan(plan: DemoPlan): ProcessPlan {
  return {
    ...common(plan, "door"),
    args: [
      // The launcher's limit for doors, which gives only its own process the flags of a command.
      "--max-old-space-size=512",
      ...firstArgs(),
      plan.entry,
      "door",
      ...flags({
        listen: `127.0.0.1:${plan.ports.door}`,
        metaserver: `127.0.0.1:${plan.ports.metaserver}`,
        metrics: "off",
      }),
      ...tlsFlags(plan, "door"),
      ...(plan.mock ? ["--mock"] : []),
    ],
    env: {
      ...inherited(plan),
      ...(plan.mock ? {} : { IDP_ISSUER: issuerOf(plan.ports.idp), IDP_CLIENT_ID: DEMO_DOOR_CLIENT_ID }),
    },
    isServing: () => answersOk(`${doorUrl(plan)}/health`),
  };
}

/** The log files of a node's services: on this one machine nodes differ only in the FileServer's. */
function logFlags(plan: DemoPlan, id: string): string[] {
  const names = { fileserver: id, metaserver: "metaserver", admin: "console" };
  return Object.entries(names).flatMap(([service, name]) =>
    flags({ "local-log": `${id}/${service}=${common(plan, name).logPath}` }),
  );
}

function common(plan: DemoPlan, name: string): Pick<ProcessPlan, "name" | "logPath"> {
  return { name, logPath: join(plan.folder, "logs", `${name}.log`) };
}

/** Preloads the module that ends each process when `grove up` is gone. */
function firstArgs(): string[] {
  return ["--import", new URL(ownFile("exit-with-parent"), import.meta.url).href];
}

/** A module of this room under its name in the sources and in the build. */
function ownFile(name: string): string {
  return `./${name}${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`;
}

function flags(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
}

function tlsFlags(plan: DemoPlan, id: string): string[] {
  const files = plan.tls?.files.get(id);
  if (plan.tls === undefined || files === undefined) return [];
  return flags({ "tls-cert": files.certificatePath, "tls-key": files.keyPath, "tls-ca": plan.tls.caPath });
}

/** Both ways of checking an ID token are configured; servers prefer the issuer's published keys (D21). */
function signInEnv(plan: DemoPlan): Record<string, string> {
  const idp = idpDocument(plan);
  if (idp === null) return { SVC_AUTH_MOCK: "1" };
  return { IDP_CLIENT_ID: idp.client_id, IDP_ISSUER: idp.issuer, IDP_TOKENINFO_URL: idp.tokeninfo_url };
}

/** The caller's environment without Grove's variables: the demonstration is the same for every user. */
function inherited(plan: DemoPlan): Record<string, string> {
  const isOurs = (name: string): boolean =>
    /^(?:IDP_|SVC_|ADMIN_PASSWORD|USE_IDP_AUTH$|GROVE_DEMO_|NODE_OPTIONS$|NODE_CHANNEL_)/.test(name);
  const kept = Object.entries(plan.env).filter(([name]) => !isOurs(name));
  return Object.fromEntries(
    kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  );
}
