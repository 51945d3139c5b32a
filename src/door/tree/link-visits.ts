// Visitors by links: the server that holds the link is found, and a session there opened by the raw token.
import { createHash, randomBytes } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { LINK_VISIT_HEADER, PERSON_ADDRESS_HEADER } from "#base/door-call.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { joinPath } from "#base/names.ts";
import { networkOf } from "#base/network.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import { SHORT } from "#client/connection/cluster.ts";
import type { DoorSide, LinkSession } from "#client/connection/door-side.ts";
import { refusalOf } from "#client/connection/refusal.ts";
import type { Profile } from "#client/signin/profile.ts";
import { uploadChunks } from "#client/transfer/upload.ts";
import type { ByteRange } from "#door/webdav/byte-ranges.ts";
import type { BytesTaker, DavResource } from "#door/webdav/resource.ts";
import type { Client } from "#wire/grpc/client.ts";
import { Kind, OnExists } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { inputOf } from "./body.ts";
import { sendDownload } from "./downloads.ts";
import { makePerson, type Person } from "./person.ts";
import { refusing } from "./refusals.ts";
import { resourceOf } from "./resources.ts";
import { VISITS_KEPT, visitToDrop } from "./visit-room.ts";

/** A visit that nobody has used for so long is given up. */
const VISIT_IDLE_MS = 300_000;
/** How long the place of a root counts. */
const PLACE_KEPT_MS = 30_000;
const CALL_TIMEOUT_MS = 10_000;
/** Random bytes by which repeats of one request are known. */
const KEY_BYTES = 16;
/**
 * Links and passwords of links from one network in a minute that opened nothing: as many as a FileServer takes. Each
 * would cost another connection to it, of which a door has a share for all of its people.
 */
export const WRONG_VISITS_PER_MINUTE = 30;
/** Entries on one page of a folder. */
const PAGE_ENTRIES = 500;

/** Parts of it. */
export interface LinkVisitsDeps {
  readonly metaServer: Pick<Client<typeof MetaServer>, "locateRoot">;
  /** With the door's certificate as it is at the moment. */
  readonly profile: Profile;
  readonly clock: Clock;
}

/** What a visitor brings. */
export interface VisitKey {
  readonly token: string;
  readonly visitor: string;
  readonly pass: string;
  readonly password?: string;
}

/** What the server told of a link. */
export interface VisitFacts {
  readonly name: string;
  readonly isFolder: boolean;
  readonly isDrop: boolean;
  readonly endsMs: number;
  readonly pass: string;
}

interface Kept {
  readonly network: string;
  readonly facts: VisitFacts;
  readonly person: Person;
  readonly gone: AbortController;
  readonly rootId: string;
  usedMs: number;
  requests: number;
  isDropped: boolean;
}

/** The visits at a door. */
export class LinkVisits {
  readonly #deps: LinkVisitsDeps;
  readonly #kept = new Map<string, Kept>();
  readonly #places = new Map<string, { readonly address: string; readonly atMs: number }>();
  readonly #wrong: SlidingWindow;
  readonly #stop: () => void;

  constructor(deps: LinkVisitsDeps) {
    this.#deps = deps;
    this.#wrong = new SlidingWindow(deps.clock, { count: WRONG_VISITS_PER_MINUTE, windowMs: 60_000 });
    this.#stop = deps.clock.every(60_000, () => this.#forgetIdle());
  }

  /** Opens a visit. Rejects as the server with the link refuses. */
  async open(key: VisitKey, address: string): Promise<LinkVisit> {
    const name = nameOf(key, address);
    const kept = key.password === undefined ? this.#kept.get(name) : undefined;
    if (kept !== undefined && !kept.isDropped) return this.#visit(name, kept);
    const opened = await this.#counted(address, () => this.#openAt(key, address, rootIdOf(key.token)));
    // Another request may have been faster; the later one counts.
    const other = this.#kept.get(name);
    if (other !== undefined) this.#drop(name, other);
    this.#makeRoom(opened.network);
    const named = key.password === undefined ? name : nameOf({ ...key, pass: opened.facts.pass }, address);
    this.#kept.set(named, opened);
    return this.#visit(named, opened);
  }

  /** Ends all visits. */
  close(): void {
    this.#stop();
    for (const [name, kept] of this.#kept) this.#drop(name, kept);
  }

  /** Throws RATE_LIMITED, and asks nobody, for a network whose links and passwords have opened nothing too often. */
  async #counted(address: string, open: () => Promise<Kept>): Promise<Kept> {
    const waitMs = this.#wrong.waitMs(address);
    if (waitMs > 0)
      throw new GroveError("RATE_LIMITED", "too many links that open nothing", {
        metadata: { retry_after_ms: String(waitMs) },
      });
    try {
      return await refusing(open);
    } catch (error) {
      // Who is asked for a password has shown a right link.
      const isAsked = isGroveError(error) && error.metadata["link"] === "password";
      if (isGroveError(error, "TOKEN_REJECTED", "RATE_LIMITED") && !isAsked) this.#wrong.count(address);
      throw error;
    }
  }

  async #openAt(key: VisitKey, address: string, rootId: string): Promise<Kept> {
    try {
      return await this.#signIn(key, address, rootId);
    } catch (error) {
      // The root has moved since its place was asked for.
      if (!isGroveError(error, "WRONG_NODE") || !this.#places.delete(rootId)) throw error;
      return await this.#signIn(key, address, rootId);
    }
  }

  async #signIn(key: VisitKey, address: string, rootId: string): Promise<Kept> {
    const fileserver = await this.#placeOf(rootId, address);
    const { profile, clock } = this.#deps;
    const gone = new AbortController();
    let facts: VisitFacts | undefined;
    const session: LinkSession = {
      visit: { ...key, password: key.password ?? "" },
      opened(link) {
        if (link === undefined) return;
        const { name, kind, drop: isDrop, endsMs, pass } = link;
        facts = { name, isDrop, isFolder: kind === Kind.DIRECTORY, endsMs: Number(endsMs), pass };
        // A session that is opened anew shows the pass: the password is not kept.
        session.visit = { ...session.visit, password: "", pass };
      },
    };
    const person = makePerson({
      username: "",
      profile: profileAt(profile, fileserver),
      credential: () => Promise.reject(new GroveError("SESSION_MISSING", "a visitor has no ID token")),
      door: sideOf(session, address),
      signal: gone.signal,
    });
    try {
      await person.cluster.link(fileserver).signIn();
      if (facts === undefined) throw new GroveError("INTERNAL", "the server told nothing of the link");
    } catch (error) {
      person.cluster.close();
      throw await refusalOf(error, fileserver);
    }
    const nowMs = clock.steadyMs();
    const network = networkOf(address);
    return { facts, person, gone, rootId, network, usedMs: nowMs, requests: 0, isDropped: false };
  }

  async #placeOf(rootId: string, address: string): Promise<string> {
    const nowMs = this.#deps.clock.steadyMs();
    const known = this.#places.get(rootId);
    if (known !== undefined && nowMs - known.atMs < PLACE_KEPT_MS) return known.address;
    try {
      const options = { timeoutMs: CALL_TIMEOUT_MS, metadata: { [PERSON_ADDRESS_HEADER]: address } };
      const found = await this.#deps.metaServer.locateRoot({ rootId }, options);
      if (this.#places.size >= VISITS_KEPT) this.#places.clear();
      this.#places.set(rootId, { address: found.address, atMs: nowMs });
      return found.address;
    } catch (error) {
      const refusal = await refusalOf(error, "metaserver");
      if (isGroveError(refusal, "NO_SUCH_PATH")) throw noLink();
      throw refusal;
    }
  }

  #visit(name: string, kept: Kept): LinkVisit {
    kept.requests++;
    kept.usedMs = this.#deps.clock.steadyMs();
    return new LinkVisit(kept.person, kept.facts, {
      failed: (error) => {
        if (!isLost(error)) return;
        this.#places.delete(kept.rootId);
        this.#drop(name, kept);
      },
      released: () => {
        kept.requests--;
        kept.usedMs = this.#deps.clock.steadyMs();
        if (kept.isDropped) closeUnused(kept);
      },
    });
  }

  #forgetIdle(): void {
    const oldestMs = this.#deps.clock.steadyMs() - VISIT_IDLE_MS;
    for (const [name, kept] of this.#kept) {
      if (kept.requests === 0 && kept.usedMs < oldestMs) this.#drop(name, kept);
    }
  }

  #makeRoom(network: string): void {
    const name = visitToDrop(this.#kept, network);
    const kept = name === undefined ? undefined : this.#kept.get(name);
    if (name !== undefined && kept !== undefined) this.#drop(name, kept);
  }

  #drop(name: string, kept: Kept): void {
    if (this.#kept.get(name) === kept) this.#kept.delete(name);
    kept.isDropped = true;
    closeUnused(kept);
  }
}

/** One request of a visitor. */
export class LinkVisit {
  readonly facts: VisitFacts;
  readonly #person: Person;
  readonly #told: { readonly failed: (error: unknown) => void; readonly released: () => void };

  constructor(
    person: Person,
    facts: VisitFacts,
    told: { readonly failed: (error: unknown) => void; readonly released: () => void },
  ) {
    this.#person = person;
    this.facts = facts;
    this.#told = told;
  }

  /** The file or folder; undefined where nothing is. */
  async look(path: readonly string[]): Promise<DavResource | undefined> {
    try {
      const attr = await this.#run(() =>
        this.#person.cluster.run("", SHORT, ({ files, unary }) =>
          files.getAttr({ path: joinPath(path) }, unary),
        ),
      );
      return resourceOf(path, attr, []);
    } catch (error) {
      if (isGroveError(error, "NO_SUCH_PATH", "NOT_DIRECTORY")) return undefined;
      throw error;
    }
  }

  /** One page of a folder. */
  async list(
    path: readonly string[],
    after: string,
  ): Promise<{ readonly entries: (DavResource & { readonly name: string })[]; readonly next: string }> {
    const request = { path: joinPath(path), pageSize: PAGE_ENTRIES, pageToken: after };
    const page = await this.#run(() =>
      this.#person.cluster.run("", SHORT, ({ files, unary }) => files.listDir(request, unary)),
    );
    const entries = page.entries.map((attr) => ({
      ...resourceOf([...path, attr.name], attr, []),
      name: attr.name,
    }));
    return { entries, next: page.nextPageToken };
  }

  /** Bytes of that version of a file. */
  async read(path: readonly string[], etag: string, range: ByteRange, take: BytesTaker): Promise<void> {
    const place = { root: "", path: joinPath(path) };
    const requestKey = randomBytes(KEY_BYTES).toString("base64url");
    await this.#run(() => sendDownload(this.#person.cluster, place, { etag, ...range, requestKey }, take));
  }

  /** Drops a file. */
  async drop(name: string, size: number, body: AsyncIterable<Uint8Array>): Promise<void> {
    const path = joinPath([name]);
    const target = { root: "", path, sizeBytes: size, mtimeMs: 0, onExists: OnExists.FAIL };
    await using input = inputOf(body);
    await this.#run(() =>
      this.#person.cluster.run("", input, (server) => uploadChunks(server, input, target, () => undefined)),
    );
  }

  /** The request has ended. */
  release(): void {
    this.#told.released();
  }

  async #run<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await refusing(call);
    } catch (error) {
      this.#told.failed(error);
      throw error;
    }
  }
}

function sideOf(link: LinkSession, address: string): DoorSide {
  const elsewhere = (): never => {
    throw new GroveError("WRONG_NODE", "what this link opens is being moved; try again");
  };
  return {
    ticketFor: elsewhere,
    routeMetadata: elsewhere,
    callMetadata: () => ({ [PERSON_ADDRESS_HEADER]: address, [LINK_VISIT_HEADER]: "1" }),
    link,
  };
}

function profileAt(profile: Profile, fileserver: string): Profile {
  const { metaservers, mock } = profile;
  return {
    metaservers,
    mock,
    idp: undefined,
    fileserver,
    get ca() {
      return profile.ca;
    },
    get certificate() {
      return profile.certificate;
    },
  };
}

/** True for a failure after which the way has to be found anew. */
function isLost(error: unknown): boolean {
  return !(error instanceof GroveError) || isGroveError(error, "TOKEN_REJECTED", "WRONG_NODE", "NOT_SHARED");
}

function closeUnused(kept: Kept): void {
  if (kept.requests > 0) return;
  kept.gone.abort();
  kept.person.cluster.close();
}

function nameOf({ token, visitor, pass }: VisitKey, address: string): string {
  return createHash("sha256").update([token, visitor, pass, address].join("\0")).digest("base64");
}

/** The root's id in a token. Throws TOKEN_REJECTED for what is none. */
function rootIdOf(token: string): string {
  const [, rootId = ""] = /^gl_([0-9a-z]{26})_/u.exec(token) ?? [];
  if (rootId === "") throw noLink();
  return rootId.toUpperCase();
}

function noLink(): GroveError {
  return new GroveError("TOKEN_REJECTED", "there is no such link, or it has ended", {
    metadata: { link: "ended" },
  });
}
