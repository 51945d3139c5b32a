// CreateLink, ListLinks and RevokeLink: an owner's links for people without an account (docs/design.md, links).
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { LAST_MOMENT_MS } from "#base/limits.ts";
import { joinPath } from "#base/names.ts";
import { networkOf } from "#base/network.ts";
import type { Random } from "#base/random.ts";
import type { LinkSessions } from "#fileserver/doors/link-sessions.ts";
import { LINK_PASSWORD_MAX_LENGTH } from "#fileserver/doors/link-sign-in.ts";
import { LINK_PRINCIPAL } from "#security/identity/link-identity.ts";
import type { LinkPasswords } from "#security/identity/link-password.ts";
import { makeLinkToken } from "#security/tickets/link-token.ts";
import type { LinkStorage, StoredLink } from "#storage/contract/links.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type {
  CreateLinkRequest,
  CreateLinkResponse,
  Link,
  ListLinksResponse,
  RevokeLinkResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Access, existing, type Reached, retryWhenStale } from "./access.ts";
import type { Caller } from "./caller.ts";
import { contextOf } from "./changes.ts";
import type { Place } from "./namespace-operations.ts";
import type { OperationMeter } from "./operation-meter.ts";

/** Bytes of the key that signs what shows a visitor's knowledge of a password. */
const PASS_KEY_BYTES = 32;

/** Dependencies of the operations. */
export interface LinkDeps {
  readonly links: LinkStorage;
  readonly locks: Pick<Storage["locks"], "namesBelow">;
  readonly access: Access;
  readonly visits: Pick<LinkSessions, "endOf">;
  readonly passwords: LinkPasswords;
  readonly meter: OperationMeter;
  readonly clock: Clock;
  readonly random: Random;
  readonly audit: AuditSink;
}

type Plain<T> = Omit<T, "$typeName" | "$unknown">;

/** The operations on links; for owners alone. Errors are those of D1. */
export class LinkOperations {
  readonly #deps: LinkDeps;

  constructor(deps: LinkDeps) {
    this.#deps = deps;
  }

  /** Makes a link. Throws NOT_OWNER, NO_SUCH_PATH, NOT_DIRECTORY, BAD_ARGUMENT, RATE_LIMITED. */
  create(caller: Caller, request: CreateLinkRequest): Promise<Plain<CreateLinkResponse>> {
    const { meter, access, links, passwords, random } = this.#deps;
    return meter.later("write", async () => {
      // The right first: hashing is work.
      await againWhenRowsCome(() =>
        this.#linkable(access.reach(caller.identity, request.root, request.path, "share"), request),
      );
      const limits = this.#limitsOf(request);
      const party = networkOf(caller.identity.username);
      const password = request.password === "" ? "" : await passwords.hash(request.password, party);
      const link = await retryWhenStale(async () => {
        const reached = access.reach(caller.identity, request.root, request.path, "share");
        const inode = this.#linkable(reached, request);
        const { id, token, hash } = makeLinkToken(random, reached.resolution.root.rootId);
        const kind = request.drop ? "drop" : "read";
        const passKey = random.bytes(PASS_KEY_BYTES).toString("hex");
        const made = { id, inodeId: inode.id, tokenHash: hash, kind, password, passKey, ...limits } as const;
        await links.create({ ...contextOf(caller, reached), ...made });
        return { id, token, owner: reached.owner };
      });
      const message = await againWhenRowsCome(() => this.#own(caller, link.owner, link.id));
      if (message === undefined) throw noSuchLink();
      this.#audit("link.create", caller, message, link.owner);
      return { token: link.token, link: message };
    });
  }

  /** Links of a place and of what is below it. Throws NOT_OWNER, NO_SUCH_PATH. */
  list(caller: Caller, place: Place): Plain<ListLinksResponse> | Promise<Plain<ListLinksResponse>> {
    const { meter, access, links, locks } = this.#deps;
    return meter.run("read", () => {
      const reached = access.reach(caller.identity, place.root, place.path, "share");
      const { id } = existing(reached);
      const top = this.#top(caller, reached.owner);
      const below = links
        .ofRoot(reached.owner)
        .filter(({ inodeId }) => locks.namesBelow(inodeId, id) !== undefined);
      return { links: below.map((link) => this.#message(link, top)).filter((link) => link !== undefined) };
    });
  }

  /** Ends a link and all that is running by it. Throws NOT_OWNER, NO_SUCH_PATH. */
  revoke(
    caller: Caller,
    { root, id }: { readonly root: string; readonly id: string },
  ): Promise<Plain<RevokeLinkResponse>> {
    const { meter, access, links, visits } = this.#deps;
    return meter.later("write", async () => {
      const { owner, message } = await againWhenRowsCome(() => {
        const reached = access.reach(caller.identity, root, "/", "share");
        return { owner: reached.owner, message: this.#own(caller, reached.owner, id) };
      });
      await links.revoke(owner, id);
      visits.endOf(LINK_PRINCIPAL + id);
      if (message === undefined) throw noSuchLink();
      this.#audit("link.revoke", caller, message, owner);
      return { revoked: message };
    });
  }

  #linkable(reached: Reached, { drop }: Pick<CreateLinkRequest, "drop">): ReturnType<typeof existing> {
    const inode = existing(reached);
    if (inode.parentId === undefined) {
      throw new GroveError("BAD_ARGUMENT", "a link opens a file or a folder, not everything that you have");
    }
    if (drop && inode.kind !== "directory") {
      throw new GroveError("NOT_DIRECTORY", "files are dropped into a folder, and this is a file");
    }
    return inode;
  }

  #limitsOf(
    request: CreateLinkRequest,
  ): Pick<StoredLink, "endsMs" | "maxBytes" | "maxDownloads" | "maxFiles"> {
    if (request.password.length > LINK_PASSWORD_MAX_LENGTH) {
      throw new GroveError("BAD_ARGUMENT", `a password has at most ${LINK_PASSWORD_MAX_LENGTH} characters`);
    }
    const limits = {
      // Pages and lists could not say when a later one is.
      endsMs: countOf(request.endsMs, "ends_ms", LAST_MOMENT_MS),
      maxDownloads: countOf(request.maxDownloads, "max_downloads"),
      maxBytes: countOf(request.maxBytes, "max_bytes"),
      maxFiles: countOf(request.maxFiles, "max_files"),
    };
    const { endsMs, maxDownloads, maxBytes, maxFiles } = limits;
    if (endsMs !== 0 && endsMs <= this.#deps.clock.wallMs()) {
      throw new GroveError("BAD_ARGUMENT", "the link would have ended already", {
        metadata: { field: "ends_ms" },
      });
    }
    if (request.drop && (endsMs === 0 || maxBytes === 0 || maxFiles === 0)) {
      throw new GroveError(
        "BAD_ARGUMENT",
        "a link to drop files needs an end, a limit of bytes and one of files",
      );
    }
    const foreign = request.drop ? maxDownloads : maxBytes + maxFiles;
    if (foreign === 0) return limits;
    throw new GroveError(
      "BAD_ARGUMENT",
      request.drop ? "nothing is downloaded by this link" : "nothing is dropped by this link",
    );
  }

  /** As #message. Throws NO_SUCH_PATH for a link that is not the owner's. */
  #own(caller: Caller, owner: string, id: string): Link | undefined {
    const link = this.#deps.links.byId(id);
    if (link?.owner !== owner) throw noSuchLink();
    return this.#message(link, this.#top(caller, owner));
  }

  #top(caller: Caller, owner: string): number {
    return this.#deps.access.reach(caller.identity, owner, "/", "share").last.id;
  }

  /** Undefined for a link whose file has gone in this very moment. */
  #message(link: StoredLink, top: number): Link | undefined {
    const names = this.#deps.locks.namesBelow(link.inodeId, top);
    if (names === undefined) return undefined;
    return {
      $typeName: "grove.v1.Link",
      id: link.id,
      path: joinPath(names),
      drop: link.kind === "drop",
      hasPassword: link.password !== "",
      createdMs: BigInt(link.createdMs),
      endsMs: BigInt(link.endsMs),
      maxDownloads: BigInt(link.maxDownloads),
      downloads: BigInt(link.downloads),
      maxBytes: BigInt(link.maxBytes),
      bytes: BigInt(link.bytes),
      maxFiles: BigInt(link.maxFiles),
      files: BigInt(link.files),
    };
  }

  #audit(act: "link.create" | "link.revoke", caller: Caller, link: Link, owner: string): void {
    const { identity, doorId: door } = caller;
    const facts = { link: link.id, drop: link.drop, password: link.hasPassword, ends_ms: link.endsMs };
    this.#deps.audit({
      act,
      actor: identity.username,
      subject: `${owner}:${link.path}`,
      detail: door === "" ? facts : { ...facts, door },
    });
  }
}

function countOf(value: bigint, field: string, most = Number.MAX_SAFE_INTEGER): number {
  if (value >= 0n && value <= BigInt(most)) return Number(value);
  throw new GroveError("BAD_ARGUMENT", `${field} is out of range`, { metadata: { field } });
}

function noSuchLink(): GroveError {
  return new GroveError("NO_SUCH_PATH", "you have no link with that id");
}
