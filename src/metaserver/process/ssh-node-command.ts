// `grove node add|list`: nodes that the console may reach over SSH, each with its host's key pinned (D20).
import { type Command, InvalidArgumentError } from "commander";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { SSH_PORT } from "#base/limits.ts";
import { errorText } from "#base/log.ts";
import { checkedNodeId, formatHostPort, type HostPort, parseHostPort } from "#base/node-id.ts";
import {
  checkedHostKey,
  checkedSshNode,
  SERVICE_NAMES,
  type ServiceName,
  type SshNode,
} from "#base/ssh-node.ts";
import { askTyped } from "#client/terminal/prompt.ts";
import { isTty, note, say, sayJson, type Terminal } from "#client/terminal/terminal.ts";
import type { NodeStore } from "#metaserver/directory/directory.ts";
import { openNodeStore } from "#metaserver/directory/open-directory.ts";
import { storeUrl } from "#metaserver/directory/store-url.ts";
import { scanHostKeys, sshFingerprint } from "#os/ssh-keyscan.ts";
import { readServices, servicesDocument } from "./ssh-services-file.ts";

/** The store and the output format. */
export interface StoreFlags {
  readonly meta?: string;
  readonly metaFile?: string;
  readonly json: boolean;
}

interface AddFlags extends StoreFlags {
  readonly hostKey?: string;
  readonly repository?: string;
  readonly service?: readonly ServiceName[];
  readonly services?: string;
  readonly replace: boolean;
}

/** Folder of the sources unless another is said. */
const REPOSITORY = "grove";

/** A login as typed: user@host or user@host:port. */
interface Login extends HostPort {
  readonly user: string;
}

/** Adds the verbs to `grove node`. */
export function addSshVerbs(root: Command, terminal: Terminal): void {
  withStore(
    root
      .command("add")
      .description(
        "Let the console reach a machine over SSH. The key of its host is shown and, once you have confirmed it, the only one that is " +
          "accepted from then on.",
      )
      .argument("<id>", "the node's id, as it is registered", checkedId)
      .argument(
        "<user@host[:port]>",
        `the login for actions; port ${SSH_PORT} unless it is given`,
        parseLogin,
      ),
  )
    .option(
      "--host-key <key>",
      "the host's key, so that nothing is asked: SHA256:… as 'ssh-keygen -lf' prints it there, or the public key itself",
    )
    .option(
      "--repository <folder>",
      `folder of the sources, for pull and build; below the home folder, or absolute (default: ${REPOSITORY})`,
    )
    .option(
      "--service <name>",
      "service that systemd runs there: fileserver, metaserver or admin; may be repeated (default: fileserver)",
      collectService,
    )
    .option("--services <file>", "JSON that says where services log and how they are started without systemd")
    .option(
      "--replace",
      "the id is known already: put this in its place; its folder and services stay unless they are given",
      false,
    )
    .action((id: string, login: Login, flags: AddFlags) => add(id, login, flags, terminal));
  withStore(
    root.command("list").description("Show the machines that the console may reach over SSH."),
  ).action((flags: StoreFlags) => list(flags, terminal));
}

/** Adds the flags that say where the store is. */
export function withStore(command: Command): Command {
  return command
    .option("--meta <url>", "the cluster's metadata store: sqlite:PATH or postgres://USER@HOST/DATABASE")
    .option("--meta-file <file>", "file with that URL in its first line, for one that holds a password")
    .option("--json", "print JSON", false);
}

async function add(id: string, login: Login, flags: AddFlags, terminal: Terminal): Promise<void> {
  const started = flags.services === undefined ? undefined : await readServices(flags.services);
  await withNodes(flags, async (store) => {
    const known = (await store.sshNodes()).find((node) => node.id === id);
    if (known !== undefined && !flags.replace) {
      throw bad(`${id} is known already, as ${loginOf(known)}: give -replace to put this in its place`);
    }
    const { user, host, port } = login;
    const { hostKey, isVouchedFor } = await shownKey(login, flags.hostKey);
    const repository = flags.repository ?? known?.repository ?? REPOSITORY;
    const services = servicesOf(flags.service, started, known);
    const node = checkedSshNode({ id, host, port, user, hostKey, repository, services });
    if (!isVouchedFor) await confirm(node, known, terminal);
    await store.putSshNode(node);
    const isRegistered = (await store.nodes()).some(({ fsId }) => fsId === id);
    if (flags.json) sayJson(terminal, { ...documentOf(node), registered: isRegistered });
    else say(terminal, `${id} is ${loginOf(node)}, host key ${sshFingerprint(hostKey)}.`);
    if (!isRegistered) note(terminal, `Note: no FileServer has registered as ${id} yet.`);
  });
}

/** What was given; else what is known, since another host key says nothing of them. */
function servicesOf(
  named: readonly ServiceName[] | undefined,
  started: SshNode["services"] | undefined,
  known: SshNode | undefined,
): SshNode["services"] {
  if (named === undefined && started === undefined) return known?.services ?? { fileserver: {} };
  return { ...Object.fromEntries((named ?? []).map((name) => [name, {}])), ...started };
}

/** The key to pin, and whether the operator vouches for it with -host_key. */
async function shownKey(
  login: Login,
  given: string | undefined,
): Promise<{ readonly hostKey: string; readonly isVouchedFor: boolean }> {
  if (given !== undefined && !given.startsWith("SHA256:")) {
    return { hostKey: checkedHostKey(given), isVouchedFor: true };
  }
  const shown = await scanHostKeys(login);
  const hostKey = given === undefined ? shown[0] : shown.find((key) => sshFingerprint(key) === given);
  if (hostKey !== undefined) return { hostKey, isVouchedFor: given !== undefined };
  throw bad(
    `the host shows another key than ${given}: ${shown.map(described).join(", ")}. Somebody may stand between; nothing was stored`,
  );
}

/** Shows the key and asks at the terminal whether it is the host's. Throws BAD_ARGUMENT without a yes. */
async function confirm(node: SshNode, known: SshNode | undefined, terminal: Terminal): Promise<void> {
  note(terminal, `${formatHostPort(node)} shows this host key:`);
  note(terminal, `  ${described(node.hostKey)}`);
  if (known !== undefined && known.hostKey !== node.hostKey) {
    note(terminal, `ANOTHER KEY is pinned for ${known.id}:`);
    note(terminal, `  ${described(known.hostKey)}`);
  }
  const kind = /ed25519|ecdsa|rsa/.exec(node.hostKey)?.[0] ?? "*";
  note(
    terminal,
    `Compare it with what the machine itself says: ssh-keygen -lf /etc/ssh/ssh_host_${kind}_key.pub`,
  );
  if (!isTty(terminal.input))
    throw bad("nobody is here to confirm it: give -host_key SHA256:… once you have compared it");
  if ((await askTyped(terminal, "Is it the same? Type yes: ")) !== "yes")
    throw bad("not confirmed; nothing was stored");
}

function described(hostKey: string): string {
  return `${hostKey.split(" ", 1)[0]} ${sshFingerprint(hostKey)}`;
}

async function list(flags: StoreFlags, terminal: Terminal): Promise<void> {
  await withNodes(flags, async (store) => {
    const nodes = await store.sshNodes();
    if (flags.json) return sayJson(terminal, nodes.map(documentOf));
    if (nodes.length === 0) note(terminal, "no machine is known: grove node add");
    const rows = nodes.map((node) => [
      node.id,
      loginOf(node),
      sshFingerprint(node.hostKey),
      node.repository,
      Object.keys(node.services).join(","),
    ]);
    const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
    for (const row of rows) {
      say(terminal, row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
    }
  });
}

/** Opens the store of the flags for one use. Throws BAD_ARGUMENT when they name none. */
export async function withNodes(flags: StoreFlags, use: (store: NodeStore) => Promise<void>): Promise<void> {
  const url = await storeUrl(flags);
  if (url === undefined)
    throw bad("say where the cluster's metadata store is: -meta or -meta_file, as for the MetaServer");
  const store = await openNodeStore(url, { clock: systemClock });
  try {
    await use(store);
  } finally {
    await store.close();
  }
}

function documentOf(node: SshNode): Record<string, unknown> {
  const { id, host, port, user, hostKey, repository, services } = node;
  const fingerprint = sshFingerprint(hostKey);
  return {
    id,
    host,
    port,
    user,
    host_key: hostKey,
    fingerprint,
    repository,
    services: servicesDocument(services),
  };
}

function loginOf(node: SshNode): string {
  return `${node.user}@${formatHostPort(node)}`;
}

function parseLogin(text: string): Login {
  const at = text.indexOf("@");
  const place = text.slice(at + 1);
  const hasPort = /^\[.*\]:\d+$|^[^:]*:\d+$/.test(place);
  try {
    if (at < 1) throw bad("write user@host or user@host:port");
    return { user: text.slice(0, at), ...parseHostPort(hasPort ? place : `${bracketed(place)}:${SSH_PORT}`) };
  } catch (error) {
    throw new InvalidArgumentError(`${errorText(error)}.`);
  }
}

function collectService(text: string, before: readonly ServiceName[] = []): ServiceName[] {
  const name = SERVICE_NAMES.find((one) => one === text);
  if (name === undefined) throw new InvalidArgumentError(`a service is one of ${SERVICE_NAMES.join(", ")}.`);
  return [...before.filter((one) => one !== name), name];
}

function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

/** A node id of the command line; an invalid one is reported as the parser does. */
export function checkedId(text: string): string {
  try {
    return checkedNodeId(text);
  } catch (error) {
    throw new InvalidArgumentError(`${errorText(error)}.`);
  }
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
