// The questions of `grove init`: when each is asked, what it proposes, and how its answer is checked.
import { existsSync } from "node:fs";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { parseBytes } from "#base/bytes.ts";
import { DISK_RESERVE_BYTES, METASERVER_PORT } from "#base/limits.ts";
import { canonicalUsername } from "#base/names.ts";
import { checkedNodeId, formatHostPort, parseHostPort } from "#base/node-id.ts";
import { parseJoinToken } from "#security/authority/join-tokens.ts";
import { readJoinedNode } from "#security/authority/joined-node.ts";
import { type Answers, type Key, ROLES, type Role, rolesOf } from "./answers.ts";
import { presentHash } from "./certificates.ts";
import {
  addressesOf,
  checkDoorFiles,
  checkFolder,
  checkStore,
  isOnlyHere,
  refused,
  remarkOnOwn,
  requireFreePorts,
  requireMoved,
  requireReachable,
} from "./checks.ts";
import type { Machine } from "./machine.ts";
import { networksOf, ownAddresses, remarkOnLoopback } from "./networks.ts";
import { dataFolders } from "./plan.ts";
import { authorityPem, checkProvider, MOCK } from "./provider.ts";

/** What a check knows beside the answer. */
export interface CheckContext {
  readonly machine: Machine;
  /** Answers before this one, checked. */
  readonly answers: Answers;
  /** Answers of the run before; empty for a new machine. */
  readonly before: Answers;
}

/** A good answer in its usual form, with remarks for the person. */
interface Checked {
  readonly value: string;
  readonly remarks?: readonly string[];
}

/** One question. */
export interface Question {
  readonly key: Key;
  /** What a person is asked; without it only a file gives the answer. */
  readonly ask?: string;
  /** False where these answers leave the question out. */
  readonly applies: (answers: Answers) => boolean;
  /** The answer that Enter gives; undefined where there is none. */
  readonly proposal: (context: CheckContext) => Promise<string | undefined> | string | undefined;
  /** Throws BAD_ARGUMENT with what is wrong. */
  readonly check: (value: string, context: CheckContext) => Promise<Checked> | Checked;
}

const has =
  (...roles: readonly Role[]) =>
  (answers: Answers): boolean =>
    roles.some((role) => rolesOf(answers).includes(role));
const always = (): boolean => true;
const isJoining = (answers: Answers): boolean => !has("metaserver")(answers);
const signsIn = has("metaserver", "fileserver");
const as = (value: string): Checked => ({ value });

/** All questions in their order. */
export const QUESTIONS: readonly Question[] = [
  {
    key: "roles",
    ask: "Which services does this machine have? (metaserver fileserver console door)",
    applies: always,
    proposal: () => "metaserver fileserver console",
    check: checkRoles,
  },
  {
    key: "listen",
    applies: always,
    proposal: () => "",
    check: checkListen,
  },
  {
    key: "name",
    ask: "By which name do other machines reach this one?",
    applies: always,
    proposal: () => hostname(),
    async check(value) {
      if (!/^[A-Za-z0-9:][A-Za-z0-9.:-]*$/.test(value)) throw refused("that is no name of a machine");
      return { value, remarks: remarkOnOwn(value, await addressesOf(value)) };
    },
  },
  {
    key: "id",
    ask: "What is the node called in the cluster?",
    applies: has("fileserver"),
    proposal({ answers }) {
      const name = answers.name ?? "";
      return isIP(name) === 0 ? name.split(".", 1)[0]?.toLowerCase() : "n1";
    },
    check(value, { before }) {
      if (before.id !== undefined && before.id !== value) {
        throw refused(`this machine is the node ${before.id}, and a node keeps its id`);
      }
      return as(checkedNodeId(value));
    },
  },
  {
    key: "metaserver",
    ask: "Where is the cluster's MetaServer? (name:port)",
    applies: isJoining,
    proposal: () => undefined,
    check: checkMetaServers,
  },
  {
    key: "token",
    ask: "The join token, from 'grove node token' on the MetaServer's machine?",
    applies: (answers) => isJoining(answers) && has("fileserver")(answers),
    // A node that has joined needs none.
    proposal: ({ before }) => (before.id === undefined ? undefined : ""),
    check(value, { before }) {
      if (value === "" && before.id !== undefined) return as("");
      parseJoinToken(value);
      return as(value);
    },
  },
  {
    key: "provider_ca",
    applies: signsIn,
    proposal: () => "",
    async check(value, { before }) {
      await authorityPem(value, before);
      return as(value);
    },
  },
  {
    key: "provider",
    ask: `The identity provider's issuer? (https://…, or "${MOCK}" for a trial of this machine alone)`,
    applies: signsIn,
    proposal: () => undefined,
    async check(value, { answers, before }) {
      if (value !== MOCK) {
        const authority = await authorityPem(answers.provider_ca ?? "", before);
        return { value, remarks: await checkProvider(value, authority) };
      }
      if (isOnlyHere(answers.name ?? "")) return as(value);
      throw refused(
        "with mock sign-in anybody can be anybody, so it is for this machine alone: with name = localhost",
      );
    },
  },
  {
    key: "client_id",
    ask: "Grove's client id at the provider?",
    applies: (answers) => signsIn(answers) && answers.provider !== MOCK,
    proposal: () => undefined,
    check(value) {
      if (/^[\u0021-\u007e]+$/.test(value)) return as(value);
      throw refused("a client id has no blanks");
    },
  },
  {
    key: "reserve",
    applies: has("fileserver"),
    proposal: () => "",
    check(value) {
      if (value !== "" && parseBytes(value) === undefined) throw refused('write bytes, or "20GiB"');
      // Flags are divided by blanks.
      return as(value.replaceAll(/\s/g, ""));
    },
  },
  {
    key: "data",
    ask: "Which folder has the data?",
    applies: always,
    proposal: ({ machine }) => machine.data,
    check: checkData,
  },
  {
    key: "store",
    ask: "Where is the metadata store? (sqlite, postgres://USER@HOST/DATABASE, or a file with that URL)",
    applies: has("metaserver"),
    proposal: () => "sqlite",
    async check(value) {
      if (/\s/.test(value)) throw refused("the store's address has no blanks");
      await checkStore(value);
      return as(value);
    },
  },
  {
    key: "operator",
    ask: "The e-mail address of the person who runs it? (empty for none)",
    applies: signsIn,
    proposal: () => "",
    check: (value) => as(value === "" ? "" : canonicalUsername(value)),
  },
  {
    key: "networks",
    ask: "Which networks do the nodes lie in? (such as 10.0.0.0/8)",
    applies: has("console"),
    proposal: proposedNetworks,
    check: checkNetworks,
  },
  {
    key: "door_url",
    ask: "Under which address do people reach the door? (https://files.example.net)",
    applies: has("door"),
    proposal: () => undefined,
    check: checkDoorUrl,
  },
  {
    key: "door_proxy",
    ask: "The address of the proxy that does the TLS for it?",
    applies: has("door"),
    proposal: () => "127.0.0.1",
    check(value) {
      if (isIP(value) === 0) throw refused("give the proxy's address, such as 127.0.0.1");
      return as(value);
    },
  },
  {
    key: "certificates",
    ask: "The folder with door.crt, door.key and ca.crt of 'grove ca issue door -door'?",
    applies: (answers) => isJoining(answers) && has("door")(answers),
    proposal: () => undefined,
    async check(value, { answers, before }) {
      // What was brought may be gone once the door has it.
      const { door } = dataFolders(answers);
      await checkDoorFiles(
        value === before.certificates && existsSync(join(door, "door.key")) ? door : value,
      );
      return as(value);
    },
  },
  {
    key: "password_hash",
    applies: has("metaserver", "fileserver", "console"),
    proposal: () => "",
    check: checkPasswordHash,
  },
  {
    key: "metrics_token",
    applies: has("fileserver", "console"),
    proposal: () => "",
    check(value) {
      if (/^[\w-]*$/.test(value)) return as(value);
      throw refused("a metrics token has letters, digits, - and _");
    },
  },
];

function checkRoles(value: string): Checked {
  const words = value.split(/[\s,]+/).filter((word) => word !== "");
  const unknown = words.find((word) => !(ROLES as readonly string[]).includes(word));
  if (unknown !== undefined)
    throw refused(`${JSON.stringify(unknown)} is no service; they are ${ROLES.join(", ")}`);
  if (words.length === 0) throw refused(`name at least one of ${ROLES.join(", ")}`);
  if (words.includes("console") && !words.includes("metaserver")) {
    throw refused("the console reads the MetaServer's store, so it goes to the MetaServer's machine");
  }
  return as(ROLES.filter((role) => words.includes(role)).join(" "));
}

async function checkListen(value: string, { answers, before }: CheckContext): Promise<Checked> {
  if (value !== "" && !isOnlyHere(value) && !ownAddresses().has(value)) {
    throw refused(`${value} is no address of this machine`);
  }
  // Services of the run before may be running.
  const earlier = rolesOf(before);
  await requireFreePorts(
    rolesOf(answers).filter((role) => !earlier.includes(role)),
    value,
  );
  return as(value);
}

async function checkMetaServers(value: string): Promise<Checked> {
  const addresses = value.split(",").map((item) => {
    const address = item.trim();
    return formatHostPort(parseHostPort(/:\d+$/.test(address) ? address : `${address}:${METASERVER_PORT}`));
  });
  for (const address of addresses) await requireReachable(address);
  return as(addresses.join(","));
}

async function checkData(value: string, { machine, answers, before }: CheckContext): Promise<Checked> {
  const { reserve } = answers;
  const needs = {
    reserveBytes: (reserve === undefined ? undefined : parseBytes(reserve)) ?? DISK_RESERVE_BYTES,
    keepsFiles: has("fileserver")(answers),
    isSystem: machine.isSystem,
  };
  const folder = value.replace(/(?<=.)\/+$/, "");
  requireMoved(before.data, folder, rolesOf(answers));
  if (has("fileserver")(answers)) await requireSameNode(join(folder, "fileserver"), answers.id);
  return { value: folder, remarks: await checkFolder(folder, needs) };
}

/** Throws BAD_ARGUMENT where the folder is that of another node: the cluster knows its roots by its id. */
async function requireSameNode(folder: string, id: string | undefined): Promise<void> {
  const known = await readJoinedNode(folder);
  if (known === undefined || known.id === id) return;
  throw refused(`${folder} is that of the node ${known.id}, and a node keeps its id: say id = ${known.id}`);
}

/** The password of a console that is there stays: the file of it counts, and no answer. */
async function checkPasswordHash(value: string, { answers, before }: CheckContext): Promise<Checked> {
  if (value !== "" && !/^(?:[0-9a-f]{64}|\$argon2id\$[\w$=,+/-]+)$/.test(value))
    throw refused("password_hash is a line of 'grove admin hash-password'");
  const present = has("console")(answers) ? await presentHash(answers) : undefined;
  if (present === undefined) return as(value);
  const isIgnored = value !== "" && value !== present && value !== before.password_hash;
  const remark =
    "this is not taken, since the console has a password: 'grove admin password rotate' changes that, and the next 'grove init' takes it along";
  return { value: present, remarks: isIgnored ? [remark] : [] };
}

async function proposedNetworks({ answers }: CheckContext): Promise<string | undefined> {
  const { name = "" } = answers;
  return isOnlyHere(name) ? "127.0.0.0/8" : networksOf(await addressesOf(name));
}

async function checkNetworks(value: string, { answers }: CheckContext): Promise<Checked> {
  const places = value.split(",").map((place) => place.trim());
  for (const place of places) {
    const [address = "", length, more] = place.split("/");
    const bits = isIP(address) === 4 ? 32 : 128;
    const isLength = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits);
    if (isIP(address) === 0 || !isLength || more !== undefined) {
      throw refused(`${JSON.stringify(place)} is no network; write one as 10.0.0.0/8`);
    }
  }
  const { name = "" } = answers;
  const isAsked = has("fileserver")(answers) && !isOnlyHere(name);
  const remarks = isAsked ? remarkOnLoopback(name, await addressesOf(name), places) : [];
  return { value: places.join(","), remarks };
}

async function checkDoorUrl(value: string): Promise<Checked> {
  const url = URL.parse(value);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isOnlyHere(url.hostname));
  if (url === null || !isSafe || url.pathname !== "/" || url.search !== "") {
    throw refused("people send passwords there: write an address such as https://files.example.net");
  }
  await addressesOf(url.hostname.replace(/^\[(.*)\]$/, "$1"));
  return as(url.origin);
}
