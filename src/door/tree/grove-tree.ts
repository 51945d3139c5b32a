// A person's files as WebDAV sees them: the own root at the top, what others share and groups have beside it.

import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { joinPath } from "#base/names.ts";
import { type Cluster, ONCE, type RetryPolicy, type Server, SHORT } from "#client/connection/cluster.ts";
import { makeFolder } from "#client/connection/folders.ts";
import { attrIfThere, listPages } from "#client/connection/listing.ts";
import type { ByteRange } from "#door/webdav/byte-ranges.ts";
import type {
  BytesTaker,
  ChangeTerms,
  DavLock,
  DavResource,
  DavTarget,
  DavTree,
  DeadProperty,
  Fetched,
  LockWish,
  NewFile,
  PropertyChange,
  SubmittedTokens,
  WriteWish,
} from "#door/webdav/resource.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";
import { storedProperty } from "#door/webdav/stored-xml.ts";
import { XmlRoom } from "#door/webdav/xml-text.ts";
import { type Attr, Kind, OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { GetPropertiesResponse, LockInfo } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { pulled, sendVersion } from "./downloads.ts";
import { KnownShares } from "./known-shares.ts";
import type { Person } from "./person.ts";
import { ownPlace, type Place, type RealPlace, rootsIn, sharedPlace, WAY_FOLDERS } from "./places.ts";
import { putInPlace, type Versions } from "./put-in-place.ts";
import { refusing, refusingStream } from "./refusals.ts";
import { davLockOf, editOf, resourceOf, virtualResource } from "./resources.ts";
import { shownTokens } from "./shown-tokens.ts";
import { fetchFile } from "./small-files.ts";
import { takeLock } from "./take-lock.ts";
import { wayEntries } from "./way-entries.ts";
import { createFile, writeFile } from "./write-file.ts";

/** What a copy expects where nothing is. */
const NEW: Versions = { onConflict: OnConflict.FAIL, ifMatch: "", targetIfMatch: "" };

/** Names that a folder of the door may take. */
const FOLDER_NAMES_MAX = 9;

/** A tree over the FileServers of a cluster, for one person. */
export class GroveTree implements DavTree {
  readonly #person: Person;
  readonly #clock: Pick<Clock, "steadyMs">;
  readonly #shares: KnownShares;

  constructor(person: Person, clock: Pick<Clock, "steadyMs">) {
    this.#person = person;
    this.#clock = clock;
    this.#shares = new KnownShares(person, clock);
  }

  look(path: readonly string[], withLocks = false): Promise<DavResource | undefined> {
    return refusing(async () => {
      const place = await this.#placeOf(path);
      if (place.kind !== "real") return place.kind === "virtual" ? virtualResource(path) : undefined;
      return this.#lookAt(path, place, withLocks);
    });
  }

  fetch(path: readonly string[]): Promise<Fetched | undefined> {
    return refusing(async () => {
      const place = await this.#placeOf(path);
      const file = place.kind === "real" ? await fetchFile(this.#person.cluster, path, place) : undefined;
      const resource = file?.resource ?? (await this.look(path));
      return resource === undefined ? undefined : { resource, data: file?.data };
    });
  }

  list(path: readonly string[]): AsyncIterable<readonly DavResource[]> {
    return refusingStream(this.#list(path));
  }

  properties(path: readonly string[]): Promise<readonly DeadProperty[]> {
    return refusing(async () => {
      const place = await this.#placeOf(path);
      if (place.kind !== "real") return [];
      const { properties } = await this.#propertiesAt(place);
      const room = new XmlRoom();
      return properties
        .map((property) => storedProperty(property, room))
        .filter((property) => property !== undefined);
    });
  }

  changeProperties(
    path: readonly string[],
    changes: readonly PropertyChange[],
    tokens: SubmittedTokens,
  ): Promise<void> {
    const edits = changes.map(editOf);
    return this.#change(path, tokens, async ({ root, path: at }, server) => {
      await server.files.changeProperties({ root, path: at, changes: edits }, server.unary);
    });
  }

  read(path: readonly string[], etag: string, range: ByteRange, take: BytesTaker): Promise<void> {
    return refusing(async () => {
      const place = await this.#realPlace(path);
      await sendVersion(this.#person.cluster, place, { etag, ...range }, take);
    });
  }

  create(path: readonly string[], file: NewFile): Promise<DavResource | undefined> {
    return refusing(async () => {
      const place = await this.#placeOf(path);
      const attr = place.kind === "real" ? await createFile(this.#person.cluster, place, file) : undefined;
      return attr === undefined ? undefined : resourceOf(path, attr, []);
    });
  }

  write(
    path: readonly string[],
    body: AsyncIterable<Uint8Array>,
    wish: WriteWish,
    tokens: SubmittedTokens,
  ): Promise<DavResource> {
    return refusing(async () => {
      const place = await this.#realPlace(path);
      return resourceOf(path, await writeFile(this.#person.cluster, place, { body, wish, tokens }), []);
    });
  }

  makeCollection(path: readonly string[], tokens: SubmittedTokens): Promise<void> {
    return refusing(async () => {
      const place = await this.#realPlace(path);
      const runAt: Cluster["runAt"] = (at, policy, operation) =>
        this.#person.cluster.runAt(at, policy, (server) => operation(shownTokens(server, tokens)));
      await makeFolder({ runAt }, place, { mayExist: false });
    });
  }

  remove(path: readonly string[], { tokens, ifMatch = "" }: ChangeTerms): Promise<void> {
    return this.#change(path, tokens, async ({ root, path: at }, server) => {
      await server.files.trashFile({ root, path: at, ifMatch }, server.unary);
    });
  }

  copy(path: readonly string[], wanted: DavTarget, isDeep: boolean, terms: ChangeTerms): Promise<void> {
    return refusing(async () => {
      const { to } = wanted;
      const { tokens } = terms;
      const [source, place] = [await this.#realPlace(path), await this.#realPlace(to)];
      const attr = await this.#attrOf(source, terms);
      const isShallow = attr.kind === Kind.DIRECTORY && !isDeep;
      const coming = { cluster: this.#person.cluster, source: attr, target: { ...wanted, place }, terms };
      if (isShallow || source.root !== place.root) {
        const copyTo = async (at: readonly string[], versions?: Versions): Promise<void> =>
          isShallow
            ? await this.#copyFolder(path, at, tokens)
            : await this.#copyBetween(path, at, attr, tokens, versions);
        const copyAs = (name: string): Promise<void> => copyTo([...to.slice(0, -1), name]);
        return await putInPlace({ ...coming, act: (versions) => copyTo(to, versions), copyAs });
      }
      const act = async (versions: Versions): Promise<void> => {
        const request = { root: source.root, path: source.path, targetPath: place.path, ...versions };
        await this.#at(place, tokens, ONCE, async (server) => {
          await server.files.copy(request, server.stream);
        });
      };
      await putInPlace({ ...coming, act });
    });
  }

  move(path: readonly string[], wanted: DavTarget, terms: ChangeTerms): Promise<void> {
    return refusing(async () => {
      const [source, target] = [await this.#realPlace(path), await this.#realPlace(wanted.to)];
      if (source.root !== target.root) {
        throw new DavRefusal(403, "nothing moves between two people's files: copy it, then delete it here");
      }
      const attr = await this.#attrOf(source, terms);
      const act = async (versions: Versions): Promise<void> => {
        const request = { root: source.root, path: source.path, targetPath: target.path, ...versions };
        await this.#at(source, terms.tokens, ONCE, async (server) => {
          await server.files.rename(request, server.unary);
        });
      };
      const { cluster } = this.#person;
      await putInPlace({ cluster, source: attr, target: { ...wanted, place: target }, terms, act });
    });
  }

  lock(
    path: readonly string[],
    wish: LockWish,
    tokens: SubmittedTokens,
  ): Promise<{ readonly lock: DavLock; readonly hasMadeFile: boolean }> {
    return refusing(async () => {
      const place = await this.#realPlace(path);
      const { lock, hasMadeFile } = await takeLock(this.#person.cluster, place, wish, tokens);
      return { lock: davLockOf(lock, place), hasMadeFile };
    });
  }

  refreshLock(path: readonly string[], token: string, seconds: number): Promise<DavLock> {
    return refusing(async () => {
      const place = await this.#realPlace(path);
      const { root, path: at } = place;
      return this.#at(place, [], SHORT, async (server) =>
        davLockOf(await server.files.refreshLock({ root, path: at, token, seconds }, server.unary), place),
      );
    });
  }

  unlock(path: readonly string[], token: string): Promise<void> {
    return this.#change(path, [], async ({ root, path: at }, server) => {
      await server.files.unlock({ root, path: at, token }, server.unary);
    });
  }

  quota(path: readonly string[]): Promise<{ readonly available: number; readonly used: number } | undefined> {
    return refusing(async () => {
      const place = await this.#placeOf(path);
      const { root } = place.kind === "real" ? place : ownPlace([]);
      const { quotaBytes, usedBytes } = await this.#person.cluster.run(root, SHORT, (server) =>
        server.files.getQuota({ root }, server.unary),
      );
      const available = quotaBytes > usedBytes ? Number(quotaBytes - usedBytes) : 0;
      return { available, used: Number(usedBytes) };
    });
  }

  async #lookAt(path: readonly string[], place: RealPlace, locks: boolean): Promise<DavResource | undefined> {
    const { root, path: at } = place;
    try {
      return await this.#at(place, [], SHORT, async (server) => {
        const looking = server.files.getAttr({ root, path: at }, server.unary);
        if (!locks) return resourceOf(path, await looking, []);
        const listing = server.files.listLocks({ root, path: at }, server.unary);
        const [attr, held] = await Promise.all([looking, listing]);
        return resourceOf(path, attr, davLocksOf(held.locks, place));
      });
    } catch (error) {
      if (isGroveError(error, "NO_SUCH_PATH", "NOT_DIRECTORY")) return undefined;
      throw error;
    }
  }

  async *#list(path: readonly string[]): AsyncGenerator<readonly DavResource[], void, undefined> {
    const place = await this.#placeOf(path);
    if (place.kind === "nothing") return;
    if (place.kind === "virtual") {
      const paths = place.names.map((name) => [...path, name]);
      // Below an owner all lies on one server, and what is shared may be a file.
      const areFolders = path.length === 1;
      const from = { look: (entry: readonly string[]) => this.look(entry, true), clock: this.#clock };
      yield await wayEntries(paths, from, areFolders);
      return;
    }
    const asked = [this.#locksAt(place, true), this.#propertiesAt(place)] as const;
    const [locks, { noneInRoot }] = await Promise.all(asked);
    for await (const page of listPages(this.#person.cluster, place)) {
      yield page.map((attr) => resourceOf([...path, attr.name], attr, locks, !noneInRoot));
    }
    if (path.length > 0) return;
    const roots = await this.#shares.roots();
    for (const folder of WAY_FOLDERS) {
      if (rootsIn(folder, roots).length > 0) yield [virtualResource([await this.#freeName(folder)])];
    }
  }

  async #locksAt(place: RealPlace, below: boolean): Promise<DavLock[]> {
    const { root, path } = place;
    const { locks } = await this.#at(place, [], SHORT, (server) =>
      server.files.listLocks({ root, path, below }, server.unary),
    );
    return davLocksOf(locks, place);
  }

  /** What is copied or moved. Throws ETAG_MISMATCH for another version than the expected one. */
  async #attrOf(place: RealPlace, { ifMatch }: ChangeTerms): Promise<Attr> {
    const { root, path } = place;
    const attr = await this.#at(place, [], SHORT, (server) =>
      server.files.getAttr({ root, path }, server.unary),
    );
    if (ifMatch === undefined || ifMatch === attr.etag) return attr;
    throw new GroveError("ETAG_MISMATCH", "the file has changed", { metadata: { etag: attr.etag } });
  }

  /** Copies from one person's root to another's: the bytes go through the door, and count whole where they arrive. */
  async #copyBetween(
    path: readonly string[],
    to: readonly string[],
    attr: Attr,
    tokens: SubmittedTokens,
    { onConflict, targetIfMatch }: Versions = NEW,
  ): Promise<void> {
    if (attr.kind === Kind.FILE) {
      const size = Number(attr.size);
      const mustBeNew = onConflict === OnConflict.FAIL;
      const ifMatch = targetIfMatch === "" ? undefined : targetIfMatch;
      const wish = { size, ifMatch, mustBeNew, isThere: !mustBeNew, changedMs: Number(attr.mtimeMs) };
      const body = pulled((take) => this.read(path, attr.etag, { start: 0, end: size }, take));
      await this.write(to, body, wish, tokens);
      await this.#copyProperties(path, to, tokens, !mustBeNew);
      return;
    }
    await this.#copyFolder(path, to, tokens);
    for await (const page of listPages(this.#person.cluster, await this.#realPlace(path))) {
      for (const child of page)
        await this.#copyBetween([...path, child.name], [...to, child.name], child, tokens);
    }
  }

  /** Makes a folder with the properties of another, and nothing in it. */
  async #copyFolder(path: readonly string[], to: readonly string[], tokens: SubmittedTokens): Promise<void> {
    await this.makeCollection(to, tokens);
    await this.#copyProperties(path, to, tokens);
  }

  async #copyProperties(
    path: readonly string[],
    to: readonly string[],
    tokens: SubmittedTokens,
    isReplaced = false,
  ): Promise<void> {
    const former = isReplaced ? await this.properties(to) : [];
    const changes = [
      ...former.map(({ namespace, name }) => ({ kind: "remove", namespace, name }) as const),
      ...(await this.properties(path)).map((property) => ({ kind: "set", property }) as const),
    ];
    if (changes.length > 0) await this.changeProperties(to, changes, tokens);
  }

  #propertiesAt({ root, path }: RealPlace): Promise<GetPropertiesResponse> {
    return this.#person.cluster.runAt({ root, path }, SHORT, (server) =>
      server.files.getProperties({ root, path }, server.unary),
    );
  }

  #change(
    path: readonly string[],
    tokens: SubmittedTokens,
    act: (place: RealPlace, server: Server) => Promise<void>,
  ): Promise<void> {
    return refusing(async () => {
      const place = await this.#realPlace(path);
      await this.#at(place, tokens, ONCE, (server) => act(place, server));
    });
  }

  #at<T>(
    place: RealPlace,
    tokens: SubmittedTokens,
    policy: RetryPolicy,
    operation: (server: Server) => Promise<T>,
  ): Promise<T> {
    return this.#person.cluster.runAt(place, policy, (server) => operation(shownTokens(server, tokens)));
  }

  async #realPlace(path: readonly string[]): Promise<RealPlace> {
    const place = await this.#placeOf(path);
    if (place.kind === "real") return place;
    throw new DavRefusal(403, "this folder shows what others share or groups have, and nothing else");
  }

  async #placeOf(path: readonly string[]): Promise<Place> {
    const [first = ""] = path;
    const folder = WAY_FOLDERS.find((name) => first.startsWith(name));
    if (folder === undefined) return ownPlace(path);
    const roots = rootsIn(folder, await this.#shares.roots());
    if (roots.length === 0 || first !== (await this.#freeName(folder))) return ownPlace(path);
    return sharedPlace(path, roots);
  }

  /** Name of a folder of the door: one that the person's own root does not have. */
  async #freeName(folder: string): Promise<string> {
    for (let number = 1; ; number++) {
      const name = number === 1 ? folder : `${folder} (${number})`;
      if (number === FOLDER_NAMES_MAX) return name;
      const own = await attrIfThere(this.#person.cluster, { root: "", path: joinPath([name]) });
      if (own === undefined) return name;
    }
  }
}

function davLocksOf(locks: readonly LockInfo[], place: RealPlace): DavLock[] {
  return locks.map((lock) => davLockOf(lock, place));
}
