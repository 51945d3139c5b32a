// App passwords at a MetaServer: users make, list and revoke them; doors bring them and get tickets.
import { hash } from "node:crypto";
import type { AuditActName, AuditSink } from "#base/audit-act.ts";
import { GroveError } from "#base/errors.ts";
import { LAST_MOMENT_MS } from "#base/limits.ts";
import { checkedNodeId } from "#base/node-id.ts";
import type { Random } from "#base/random.ts";
import { isSamePerson } from "#base/verified-identity.ts";
import type { AppPasswordRecord, Revocations } from "#metaserver/directory/credential-store.ts";
import { makeAppPassword } from "#security/tickets/app-password.ts";
import { TICKET_LIFE_MS } from "#security/tickets/ticket.ts";
import type { ServiceHandlers } from "#wire/grpc/handler.ts";
import type {
  AppPassword,
  CreateAppPasswordRequest,
  IssueTicketResponse,
  MetaServer,
} from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import type { Identified } from "./app-passwords.ts";
import { doorSpeakerFor } from "./door-speaker.ts";
import { speakerFor } from "./node-speaker.ts";
import { type RecentUser, type RecentUserDeps, requireRecentUser } from "./recent-user.ts";
import type { TicketSigner } from "./ticket-signer.ts";

/** How long a MetaServer tells FileServers the ends of credentials that it has read. */
const REVOCATIONS_READ_EVERY_MS = 1_000;
/** Characters of a name. */
const NAME_MAX_LENGTH = 64;
/** Bytes of a path, as everywhere. */
const PATH_MAX_LENGTH = 4_096;

/** Dependencies of the routes. */
export interface CredentialRoutesDeps extends RecentUserDeps {
  readonly signer: TicketSigner;
  readonly random: Random;
  readonly audit: AuditSink;
  /** Where WebDAV programs come in, for people to be told; undefined where it is not known. */
  readonly webdavUrl?: string | undefined;
}

/** The handlers about credentials of doors. */
export type CredentialRoutes = Pick<
  ServiceHandlers<typeof MetaServer>,
  "createAppPassword" | "listAppPasswords" | "revokeAppPassword" | "issueTicket" | "getTicketNews"
>;

/** Makes the handlers. */
export function credentialRoutes(deps: CredentialRoutesDeps): CredentialRoutes {
  const { directory, clock, log, passwords, signer } = deps;
  const revocations = new FreshRevocations(deps);
  return {
    async createAppPassword(request, context) {
      const user = await requireRecentUser(context, deps);
      const { record, text } = newRecord(request, user, deps);
      await directory.addAppPassword(record);
      passwords.made(record.hash);
      log.info("app_password_made", {
        user: record.owner,
        credential: `app:${record.id}`,
        peer: user.address,
        read_only: record.readOnly,
        below: record.folderId === "" ? undefined : record.folderId,
      });
      auditAppPassword("app_password.create", record, user, deps);
      return { password: text, appPassword: message(record), webdavUrl: deps.webdavUrl ?? "" };
    },

    async listAppPasswords(_request, context) {
      const user = await requireRecentUser(context, deps);
      return { appPasswords: (await ownAppPasswords(user, deps)).map(message) };
    },

    async revokeAppPassword({ which }, context) {
      const user = await requireRecentUser(context, deps);
      const { username, address: peer } = user;
      const record = await endOwn(which, user, deps);
      if (record === undefined)
        throw new GroveError("BAD_ARGUMENT", "you have no app password of that name or id");
      log.info("app_password_revoked", { user: username, credential: `app:${record.id}`, peer });
      auditAppPassword("app_password.revoke", record, user, deps);
      return { revoked: message(record) };
    },

    async issueTicket({ appPassword, fsId }, context) {
      const door = doorSpeakerFor(context, deps);
      const identified = await passwords.identify(appPassword, door);
      const { owner: username, issuer, subject } = identified.record;
      const { scope, credential } = identified;
      const who = whoMessage(identified);
      if (fsId === "") return who;
      const clusterId = await directory.clusterId();
      if (clusterId === undefined)
        throw new GroveError("STARTING", "no FileServer has registered yet; try again");
      // None outlives its app password, so that the sessions that it opens end in time.
      const nowMs = Math.trunc(clock.wallMs());
      const { endsMs } = identified.record;
      const leftMs = endsMs === 0 ? TICKET_LIFE_MS : Math.min(TICKET_LIFE_MS, endsMs - nowMs);
      const ticket = await signer.sign({
        clusterId,
        username,
        issuer,
        subject,
        audience: checkedNodeId(fsId),
        doorKey: door.key,
        scope,
        credential,
        issuedMs: nowMs + leftMs - TICKET_LIFE_MS,
      });
      return { ...who, ticket, ticketLifeMs: leftMs };
    },

    async getTicketNews({ fsId, mark: known }, context) {
      await directory.requireNode({ fsId, speaker: speakerFor(fsId, context, deps) });
      const { mark, value } = await revocations.read();
      const keys = signer.publicKeys().map(({ id, publicKey }) => ({ id, publicKey }));
      const clusterId = (await directory.clusterId()) ?? "";
      if (mark === known) return { keys, mark, unchanged: true, clusterId };
      const ended = value.credentials.map(({ credential, atMs }) => ({ credential, atMs: BigInt(atMs) }));
      return { keys, mark, ended, clusterId, allBeforeMs: BigInt(value.allBeforeMs) };
    },
  };
}

function auditAppPassword(
  act: AuditActName,
  { id, owner, name, readOnly, folderPath, endsMs }: AppPasswordRecord,
  { address, doorId }: RecentUser,
  { audit }: CredentialRoutesDeps,
): void {
  const detail = {
    credential: `app:${id}`,
    name,
    read_only: readOnly,
    below: folderPath === "" ? undefined : folderPath,
    ends: endsMs === 0 ? undefined : new Date(endsMs).toISOString(),
    address,
    door: doorId,
  };
  audit({ act, actor: owner, subject: owner, detail });
}

/** The person's app passwords: an address may have belonged to somebody else, whose open nothing any more. */
async function ownAppPasswords(
  user: RecentUser,
  { directory }: CredentialRoutesDeps,
): Promise<AppPasswordRecord[]> {
  return (await directory.appPasswordsOf(user.username)).filter((record) => isSamePerson(record, user));
}

/** Ends one of them, by its id or name; undefined where there is none. */
async function endOwn(
  which: string,
  user: RecentUser,
  deps: CredentialRoutesDeps,
): Promise<AppPasswordRecord | undefined> {
  const own = await ownAppPasswords(user, deps);
  const chosen = own.find(({ id }) => id === which) ?? own.find(({ name }) => name === which);
  const nowMs = Math.trunc(deps.clock.wallMs());
  return chosen && (await deps.directory.revokeAppPassword(user.username, chosen.id, nowMs));
}

function newRecord(
  request: CreateAppPasswordRequest,
  { username, issuer, subject, doorId }: RecentUser,
  { clock, random }: CredentialRoutesDeps,
): { readonly record: AppPasswordRecord; readonly text: string } {
  const { name, readOnly, folderId, folderPath } = request;
  const nowMs = Math.trunc(clock.wallMs());
  const endsMs = Number(request.endsMs);
  if (name.trim() !== name || name === "" || name.length > NAME_MAX_LENGTH || /\p{C}/u.test(name))
    throw new GroveError("BAD_ARGUMENT", `an app password's name has 1 to ${NAME_MAX_LENGTH} characters`);
  if (!/^[A-Za-z0-9_-]{0,64}$/.test(folderId) || folderPath.length > PATH_MAX_LENGTH)
    throw new GroveError("BAD_ARGUMENT", "folder_id is the id of no directory");
  if (endsMs !== 0 && (endsMs <= nowMs || endsMs > LAST_MOMENT_MS))
    throw new GroveError("BAD_ARGUMENT", "an app password ends in the future, at a time that a date can be");
  const made = makeAppPassword(random);
  const record: AppPasswordRecord = {
    id: made.id,
    owner: username,
    issuer,
    subject,
    name,
    hash: made.hash.toString("hex"),
    readOnly,
    folderId,
    folderPath: folderId === "" ? "" : folderPath,
    createdMs: nowMs,
    endsMs,
    lastUsedMs: 0,
    // The door has seen it, so that the end of what a door saw ends this as well.
    doors: doorId === undefined ? {} : { [doorId]: nowMs },
  };
  return { record, text: made.text };
}

function whoMessage({
  record,
  scope,
  credential,
  recentUntilMs,
}: Identified): Pick<
  IssueTicketResponse,
  "credential" | "folderId" | "readOnly" | "recentUntilMs" | "username"
> {
  return {
    username: record.owner,
    credential,
    readOnly: scope.access === "read",
    folderId: scope.folderId ?? "",
    recentUntilMs: BigInt(recentUntilMs ?? 0),
  };
}

function message(record: AppPasswordRecord): Omit<AppPassword, "$typeName" | "$unknown"> {
  const { id, name, readOnly, folderId, folderPath, createdMs, endsMs, lastUsedMs } = record;
  return {
    id,
    name,
    readOnly,
    folderId,
    folderPath,
    createdMs: BigInt(createdMs),
    endsMs: BigInt(endsMs),
    lastUsedMs: BigInt(Math.trunc(lastUsedMs)),
  };
}

interface ReadRevocations {
  readonly mark: string;
  readonly value: Revocations;
}

/** The store's revocations, read once for many FileServers. */
class FreshRevocations {
  readonly #deps: CredentialRoutesDeps;
  #last: { readonly atMs: number; readonly reading: Promise<ReadRevocations> } | undefined;

  constructor(deps: CredentialRoutesDeps) {
    this.#deps = deps;
  }

  /** Rejects with the store's errors. */
  read(): Promise<ReadRevocations> {
    const { directory, clock } = this.#deps;
    const nowMs = clock.steadyMs();
    if (this.#last !== undefined && nowMs - this.#last.atMs < REVOCATIONS_READ_EVERY_MS)
      return this.#last.reading;
    const reading = directory.revocations().then((value) => ({
      mark: hash("sha256", JSON.stringify(value), "hex"),
      value,
    }));
    const last = { atMs: nowMs, reading };
    this.#last = last;
    // A failure is no answer for the next one.
    reading.catch(() => {
      if (this.#last === last) this.#last = undefined;
    });
    return reading;
  }
}
