// RegisterClient by a link: a door shows the raw token of a visitor without an account (docs/design.md, links).
import type { AuditSink } from "#base/audit-act.ts";
import type { Clock } from "#base/clock.ts";
import { constantTimeEqual } from "#base/constant-time.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { UPLOAD_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import type { Logger } from "#base/log.ts";
import { networkOf } from "#base/network.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import { VERSION } from "#base/version.ts";
import { linkIdentity } from "#security/identity/link-identity.ts";
import { isPass, LINK_PASS_MS, type LinkPasswords, makePass } from "#security/identity/link-password.ts";
import { readLinkToken } from "#security/tickets/link-token.ts";
import { type Inode, inodeIdText } from "#storage/contract/inode.ts";
import { LINK_ENDED_TEXT, type StoredLink } from "#storage/contract/links.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { LinkVisit, RegisterClientResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { CallingDoor } from "./door-peer.ts";
import type { LinkGate } from "./link-gate.ts";
import type { LinkSessions } from "./link-sessions.ts";

/** Tokens that open nothing, for one network of visitors in a minute. */
export const WRONG_LINKS_PER_MINUTE = 30;
/** Wrong passwords of one link from one network of visitors in five minutes. */
export const WRONG_LINK_PASSWORDS = 10;
const WRONG_PASSWORD_WINDOW_MS = 300_000;
/**
 * Wrong passwords of one link in an hour from networks that were wrong before, wherever these are: doors tell where,
 * and one may lie. Networks that were not have as many of their own, so that guessers do not shut others out.
 */
export const WRONG_PASSWORDS_PER_LINK = 100;
const HOUR_MS = 3_600_000;
/** Characters of a password. */
export const LINK_PASSWORD_MAX_LENGTH = 256;
const VISITOR = /^[A-Za-z0-9]{16,64}$/u;

/** Dependencies of the operation. */
export interface LinkSignInDeps {
  readonly visits: LinkSessions;
  readonly gate: LinkGate;
  readonly passwords: LinkPasswords;
  readonly storage: Pick<Storage, "links" | "locks" | "resolve">;
  readonly audit: AuditSink;
  readonly clock: Clock;
  readonly log: Logger;
}

type Plain<T> = Omit<T, "$typeName" | "$unknown">;

/** Sign-ins of visitors. */
export class LinkSignIn {
  readonly #deps: LinkSignInDeps;
  readonly #wrongTokens: SlidingWindow;
  readonly #wrongHere: SlidingWindow;
  /** By link: of networks that were wrong in the last hour, and of others. */
  readonly #wrongAgain: SlidingWindow;
  readonly #wrongFirst: SlidingWindow;
  /** By link and network. */
  readonly #wasWrong: SlidingWindow;

  constructor(deps: LinkSignInDeps) {
    this.#deps = deps;
    this.#wrongTokens = new SlidingWindow(deps.clock, { count: WRONG_LINKS_PER_MINUTE, windowMs: 60_000 });
    this.#wrongHere = new SlidingWindow(deps.clock, {
      count: WRONG_LINK_PASSWORDS,
      windowMs: WRONG_PASSWORD_WINDOW_MS,
    });
    const ofLink = { count: WRONG_PASSWORDS_PER_LINK, windowMs: HOUR_MS };
    this.#wrongAgain = new SlidingWindow(deps.clock, ofLink);
    this.#wrongFirst = new SlidingWindow(deps.clock, ofLink);
    this.#wasWrong = new SlidingWindow(deps.clock, { count: 1, windowMs: HOUR_MS });
  }

  /**
   * Opens a session bound to the door's key. Throws TOKEN_REJECTED for what opens nothing, with link=password in its
   * metadata where a password is asked for and link=wrong for a wrong one; RATE_LIMITED; WRONG_NODE.
   */
  async register(visit: LinkVisit, door: CallingDoor): Promise<Plain<RegisterClientResponse>> {
    const { visits, clock, log } = this.#deps;
    if (!VISITOR.test(visit.visitor)) throw new GroveError("BAD_ARGUMENT", "the visitor has no name");
    requireRest(this.#wrongTokens.waitMs(door.address), "too many links that open nothing");
    const { link, inode, name } = await againWhenRowsCome(() => {
      const found = this.#linkOf(visit.token, door);
      return { link: found, ...this.#target(found) };
    });
    const pass = await this.#passOf(link, visit, door);
    // The link may have ended while the password was checked.
    const now = await againWhenRowsCome(() => this.#deps.storage.links.byId(link.id));
    if (now?.tokenHash !== link.tokenHash) throw noLink();
    const { id, kind, owner, endsMs } = link;
    const inodeId = inodeIdText(link.inodeId);
    const identity = linkIdentity({ id, kind, owner, inodeId, visitor: visit.visitor });
    const { token, session } = visits.create(identity, door);
    log.info("link_opened", { link: id, session: session.id, address: door.address, door: door.id });
    const facts = {
      $typeName: "grove.v1.LinkFacts" as const,
      id,
      name,
      drop: kind === "drop",
      endsMs: BigInt(endsMs),
      pass,
      kind: inode.kind === "file" ? Kind.FILE : Kind.DIRECTORY,
    };
    return {
      sessionToken: token,
      expiresAt: BigInt(Math.floor((clock.wallMs() + visits.table.limits.lifetimeMs) / 1_000)),
      username: identity.username,
      rootId: "",
      idleTimeoutSeconds: Math.floor(visits.table.limits.idleTimeoutMs / 1_000),
      sessionsOpen: 1,
      evictedOldest: false,
      serverVersion: VERSION,
      maxChunkBytes: UPLOAD_MESSAGE_MAX_BYTES,
      folderPath: "",
      link: facts,
    };
  }

  #linkOf(token: string, door: CallingDoor): StoredLink {
    const { storage, gate } = this.#deps;
    const read = readLinkToken(token);
    if (read !== undefined && !storage.links.hasRoot(read.rootId)) {
      this.#wrongTokens.count(door.address);
      throw new GroveError("WRONG_NODE", "the root of this link is not on this fileserver");
    }
    const link = read === undefined ? undefined : storage.links.byId(read.id);
    const isRight = constantTimeEqual(read?.hash ?? "", link?.tokenHash ?? "none");
    if (link !== undefined && isRight && gate.isOpen(link)) return link;
    this.#wrongTokens.count(door.address);
    throw noLink();
  }

  #target({ owner, inodeId }: StoredLink): { readonly inode: Inode; readonly name: string } {
    const { storage } = this.#deps;
    const [top] = storage.resolve(owner, []).chain;
    const names = storage.locks.namesBelow(inodeId, top.id);
    const inode = names === undefined ? undefined : storage.resolve(owner, names).chain.at(-1);
    if (inode === undefined || inode.id !== inodeId) throw noLink();
    return { inode, name: inode.name };
  }

  /** What proves for some hours that the visitor knows the password; empty for a link without one. */
  async #passOf(
    link: StoredLink,
    { pass, password, visitor }: LinkVisit,
    door: CallingDoor,
  ): Promise<string> {
    if (link.password === "") return "";
    const { clock, passwords } = this.#deps;
    if (isPass(pass, link.passKey, visitor, clock.wallMs())) return pass;
    if (password === "") {
      throw new GroveError("TOKEN_REJECTED", "this link asks for a password", {
        metadata: { link: "password" },
      });
    }
    const network = networkOf(door.address);
    const forgive = this.#countGuess(link.id, `${link.id} ${network}`);
    const isLong = password.length > LINK_PASSWORD_MAX_LENGTH;
    let isRight = false;
    try {
      isRight = !isLong && (await passwords.verify(password, link.password, network));
    } catch (error) {
      if (isGroveError(error, "RATE_LIMITED")) forgive();
      throw error;
    }
    if (!isRight) throw this.#wrongPassword(link, door);
    forgive();
    return makePass(link.passKey, visitor, Math.floor(clock.wallMs()) + LINK_PASS_MS);
  }

  /**
   * Counts a guess before its check, so that guesses at once count too; the returned function takes it back. Throws
   * RATE_LIMITED: by network first, so that one network uses up no link.
   */
  #countGuess(link: string, here: string): () => void {
    requireRest(this.#wrongHere.waitMs(here), "too many wrong passwords");
    const isFirst = this.#wasWrong.waitMs(here) === 0;
    const ofLink = isFirst ? this.#wrongFirst : this.#wrongAgain;
    requireRest(ofLink.waitMs(link), "too many wrong passwords of this link");
    this.#wrongHere.count(here);
    ofLink.count(link);
    if (isFirst) this.#wasWrong.count(here);
    return () => {
      this.#wrongHere.giveBack(here);
      ofLink.giveBack(link);
      if (isFirst) this.#wasWrong.giveBack(here);
    };
  }

  #wrongPassword({ id, owner }: StoredLink, door: CallingDoor): GroveError {
    this.#deps.audit({
      act: "link.refused",
      actor: "unknown",
      subject: owner,
      detail: { link: id, address: door.address, door: door.id },
    });
    return new GroveError("TOKEN_REJECTED", "this is not the link's password", {
      metadata: { link: "wrong" },
    });
  }
}

function noLink(): GroveError {
  return new GroveError("TOKEN_REJECTED", LINK_ENDED_TEXT, { metadata: { link: "ended" } });
}

function requireRest(waitMs: number, problem: string): void {
  if (waitMs === 0) return;
  throw new GroveError("RATE_LIMITED", `${problem}; try again in ${Math.ceil(waitMs / 1_000)} seconds`, {
    metadata: { retry_after_ms: String(waitMs) },
  });
}
