// What the answers amount to: environment files, units and the file for people, as text; pure.
import { isIP } from "node:net";
import { join } from "node:path";
import { CONSOLE_PORT, DOOR_PORT, FILESERVER_PORT, METASERVER_PORT } from "#base/limits.ts";
import { formatHostPort } from "#base/node-id.ts";
import { type Answers, type Role, rolesOf } from "./answers.ts";
import { refused } from "./checks.ts";
import type { Machine } from "./machine.ts";
import { MOCK, providerCaPath } from "./provider.ts";

/** A file that is to be there. */
export interface PlannedFile {
  readonly path: string;
  readonly mode: number;
  readonly text: string;
}

/** What the plan needs beside the answers. */
export interface PlanInputs {
  readonly machine: Pick<Machine, "settings" | "units" | "program" | "isSystem" | "hasPackageUnit">;
  readonly answers: Answers;
  /** Text of the unit that came with the program, by role. */
  readonly templates: ReadonlyMap<Role, string>;
  /** PEM of the provider's authority. */
  readonly providerCa: string | undefined;
  /** PEM of the cluster's authority, where this machine has it. */
  readonly clusterCa: string | undefined;
}

/** Data folders of the services. */
export interface DataFolders {
  readonly top: string;
  readonly authority: string;
  readonly metaserver: string;
  readonly fileserver: string;
  readonly console: string;
  readonly door: string;
}

/** The folders below an answer's. */
export function dataFolders({ data = "" }: Answers): DataFolders {
  return {
    top: data,
    authority: join(data, "ca"),
    metaserver: join(data, "metaserver"),
    fileserver: join(data, "fileserver"),
    console: join(data, "admin"),
    door: join(data, "door"),
  };
}

/** The systemd unit of a role. */
export function unitOf(role: Role): string {
  return `svc-${serviceOf(role)}.service`;
}

/** The name that a role's command, unit and environment file have. */
export function serviceOf(role: Role): string {
  return role === "console" ? "admin" : role;
}

/** The MetaServers' addresses: this machine's own, or those that were named. */
export function metaserversOf(answers: Answers): string {
  const own = formatHostPort({ host: answers.name ?? "", port: METASERVER_PORT });
  return rolesOf(answers).includes("metaserver") ? own : (answers.metaserver ?? own);
}

/** The console's certificate is for a name or for an address. */
export function namesOf(host: string): { readonly names: string[]; readonly addresses: string[] } {
  return isIP(host) === 0 ? { names: [host], addresses: [] } : { names: [], addresses: [host] };
}

/** All files of a machine, in the order in which they are written. */
export function planFiles(inputs: PlanInputs): PlannedFile[] {
  const { machine, answers, providerCa, clusterCa } = inputs;
  const { top } = dataFolders(answers);
  const files: PlannedFile[] = [];
  if (providerCa !== undefined) files.push({ path: providerCaPath(top), mode: 0o644, text: providerCa });
  for (const role of rolesOf(answers)) {
    const name = `${serviceOf(role)}.env`;
    const lines = environmentOf(role, answers);
    const head = `# ${machine.settings}/${name}: variables of svc-${serviceOf(role)}, written by 'grove init'.`;
    files.push({
      path: join(machine.settings, name),
      mode: 0o600,
      text: `${[head, ...lines].join("\n")}\n`,
    });
    files.push(...unitFiles(role, inputs));
  }
  if (clusterCa !== undefined) {
    const text = `${JSON.stringify(peopleDocument(answers, clusterCa, providerCa), null, 2)}\n`;
    files.push({ path: join(top, "cluster.json"), mode: 0o644, text });
  }
  return files;
}

/** What people sign in with: 'grove login --cluster FILE'. It holds no secret. */
function peopleDocument(answers: Answers, clusterCa: string, providerCa: string | undefined): object {
  const idp = { issuer: answers.provider, client_id: answers.client_id };
  return {
    metaserver: metaserversOf(answers),
    ca_pem: clusterCa,
    mock: answers.provider === MOCK,
    ...(answers.provider === MOCK ? {} : { idp }),
    ...(providerCa === undefined ? {} : { idp_ca_pem: providerCa }),
  };
}

function environmentOf(role: Role, answers: Answers): string[] {
  const variables: Record<string, string | undefined> = {
    ...(role === "metaserver" || role === "fileserver" ? signInVariables(answers) : {}),
    ...(role === "door" ? {} : { ADMIN_PASSWORD_HASH: role === "console" ? "" : answers.password_hash }),
    ...(role === "fileserver" || role === "console" ? { SVC_METRICS_TOKEN: answers.metrics_token } : {}),
    SVC_FLAGS: flagsOf(role, answers).join(" "),
  };
  return Object.entries(variables).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [variableLine(name, value)],
  );
}

/**
 * A line of an environment file. systemd joins a line that ends with a backslash with the next, and a quotation
 * mark at the start takes in what follows; in flags any of them divides words. Throws BAD_ARGUMENT for those.
 */
function variableLine(name: string, value: string): string {
  const isBad = name === "SVC_FLAGS" ? /["'\\\p{Cc}]/u : /^["']|[\\\p{Cc}]/u;
  if (!isBad.test(value)) return `${name}=${value}`;
  throw refused(
    `an answer cannot stand in an environment file as ${name}: it has a quotation mark or backslash`,
  );
}

function signInVariables(answers: Answers): Record<string, string | undefined> {
  const provider: Record<string, string | undefined> =
    answers.provider === MOCK
      ? { SVC_AUTH_MOCK: "1" }
      : { IDP_CLIENT_ID: answers.client_id, IDP_ISSUER: answers.provider };
  return { ...provider, SVC_ADMIN_EMAIL: answers.operator };
}

function flagsOf(role: Role, answers: Answers): string[] {
  const { listen = "", name = "", reserve = "" } = answers;
  const folders = dataFolders(answers);
  const idpCa = (answers.provider_ca ?? "") === "" ? [] : ["-idp_ca", providerCaPath(folders.top)];
  const on = (port: number): string[] =>
    listen === "" ? [] : ["-listen", formatHostPort({ host: listen, port })];
  switch (role) {
    case "metaserver":
      return [
        "-advertise",
        formatHostPort({ host: name, port: METASERVER_PORT }),
        ...on(METASERVER_PORT),
        ...storeFlags(answers),
        ...(answers.door_url === undefined ? [] : ["-door_url", answers.door_url]),
        ...idpCa,
      ];
    case "fileserver":
      return [...on(FILESERVER_PORT), ...(reserve === "" ? [] : ["-reserve", reserve]), ...idpCa];
    case "console":
      return [
        ...on(CONSOLE_PORT),
        ...storeFlags(answers, `sqlite:${join(folders.metaserver, "metadata.db")}`),
        ...words({
          "-tls_ca": join(folders.authority, "ca.crt"),
          "-tls_cert": join(folders.console, "console.crt"),
          "-tls_key": join(folders.console, "console.key"),
          "-password_file": join(folders.console, "password"),
          "-allow_nodes": answers.networks ?? "",
          "-metaserver": metaserversOf(answers),
        }),
      ];
    // A door.
    default:
      return [
        ...on(DOOR_PORT),
        ...words({
          "-public_url": answers.door_url ?? "",
          "-trusted_proxy": answers.door_proxy ?? "",
          "-metaserver": metaserversOf(answers),
          "-tls_cert": join(folders.door, "door.crt"),
          "-tls_key": join(folders.door, "door.key"),
          "-tls_ca": join(folders.door, "ca.crt"),
        }),
      ];
  }
}

/** Words of a command line from flags with their values. */
function words(flags: Readonly<Record<string, string>>): string[] {
  return Object.entries(flags).flatMap(([flag, value]) => [flag, value]);
}

function storeFlags({ store = "sqlite" }: Answers, ownStore?: string): string[] {
  if (store === "sqlite") return ownStore === undefined ? [] : ["-meta", ownStore];
  return store.startsWith("/") ? ["-meta_file", store] : ["-meta", store];
}

/** A unit is written where the package brought none, and a part of one where the data lies elsewhere. */
function unitFiles(role: Role, { machine, answers, templates }: PlanInputs): PlannedFile[] {
  const unit = unitOf(role);
  const { top } = dataFolders(answers);
  const template = templates.get(role) ?? "";
  const start = (/^ExecStart=\S+ (.*)$/m.exec(template)?.[1] ?? "").replaceAll("%S/grove", top);
  const isUsual = machine.isSystem && top === "/var/lib/grove";
  const elsewhere = `ReadWritePaths=${top}`;
  if (machine.hasPackageUnit(unit)) {
    if (isUsual) return [];
    const program = /^ExecStart=(\S+) /m.exec(template)?.[1] ?? machine.program;
    const text = `# The data's folder, as 'grove init' was told.\n[Service]\n${elsewhere}\nExecStart=\nExecStart=${program} ${start}\n`;
    return [{ path: join(machine.units, `${unit}.d`, "50-init.conf"), mode: 0o644, text }];
  }
  const text = template
    .replace(/^ExecStart=.*$/m, `ExecStart=${machine.program} ${start}${isUsual ? "" : `\n${elsewhere}`}`)
    .replaceAll("/etc/grove/", `${machine.settings}/`)
    .replaceAll("file:/opt/grove/", `file:${machine.program.replace(/\/grove$/, "")}/`);
  return [{ path: join(machine.units, unit), mode: 0o644, text }];
}
