// A tree in memory, so that the methods can be tried without a cluster.
import { randomUUID } from "node:crypto";
import { GroveError } from "#base/errors.ts";
import { INLINE_FILE_MAX_BYTES } from "#base/limits.ts";
import type { ByteRange } from "./byte-ranges.ts";
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
} from "./resource.ts";

interface Node {
  readonly children: Map<string, Node> | undefined;
  bytes: Buffer;
  changedMs: number;
  etag: string;
  properties: readonly DeadProperty[];
}

let versions = 0;

/** A tree with locks and dead properties that forgets all when it goes. */
export class MemoryTree implements DavTree {
  readonly #top = folder();
  #locks: DavLock[] = [];

  look(path: readonly string[], withLocks = false): Promise<DavResource | undefined> {
    const node = this.#find(path);
    const found = node === undefined ? undefined : this.#resource(path, node);
    return Promise.resolve(found === undefined || withLocks ? found : { ...found, locks: [] });
  }

  async fetch(path: readonly string[]): Promise<Fetched | undefined> {
    const resource = await this.look(path);
    const bytes = this.#find(path)?.bytes;
    const isSmall = resource?.isCollection === false && resource.size <= INLINE_FILE_MAX_BYTES;
    return resource === undefined ? undefined : { resource, data: isSmall ? bytes : undefined };
  }

  async *list(path: readonly string[]): AsyncGenerator<readonly DavResource[], void, undefined> {
    for (const [name, node] of this.#need(path).children ?? []) {
      yield await Promise.resolve([this.#resource([...path, name], node)]);
    }
  }

  properties(path: readonly string[]): Promise<readonly DeadProperty[]> {
    return Promise.resolve(this.#need(path).properties);
  }

  changeProperties(
    path: readonly string[],
    changes: readonly PropertyChange[],
    tokens: SubmittedTokens,
  ): Promise<void> {
    this.#checkLock(path, tokens);
    const node = this.#need(path);
    for (const change of changes) {
      const { namespace, name } = change.kind === "set" ? change.property : change;
      node.properties = node.properties.filter((one) => one.namespace !== namespace || one.name !== name);
      if (change.kind === "set") node.properties = [...node.properties, change.property];
    }
    return Promise.resolve();
  }

  async read(path: readonly string[], etag: string, range: ByteRange, take: BytesTaker): Promise<void> {
    const node = this.#need(path);
    if (node.etag !== etag) throw new GroveError("ETAG_MISMATCH", "the file has changed");
    const taken = take([node.bytes.subarray(range.start, range.end)]);
    if (taken !== true) await taken;
  }

  create(path: readonly string[], { data, changedMs, tokens }: NewFile): Promise<DavResource | undefined> {
    const isFree = this.#find(path) === undefined && this.#find(path.slice(0, -1))?.children !== undefined;
    if (!isFree) return Promise.resolve(undefined);
    this.#checkMembership(path, tokens);
    const node = file(Buffer.from(data), changedMs);
    this.#put(path, node);
    return Promise.resolve(this.#resource(path, node));
  }

  async write(
    path: readonly string[],
    body: AsyncIterable<Uint8Array>,
    wish: WriteWish,
    tokens: SubmittedTokens,
  ): Promise<DavResource> {
    this.#checkLock(path, tokens);
    const parts: Uint8Array[] = [];
    for await (const part of body) parts.push(part);
    if (wish.size !== undefined && Buffer.concat(parts).length !== wish.size)
      throw new GroveError("BAD_ARGUMENT", "the body has not the bytes that were announced");
    const before = this.#find(path);
    this.#checkVersion(path, wish.ifMatch);
    if (before !== undefined && wish.mustBeNew) throw taken();
    if (before === undefined) this.#checkMembership(path, tokens);
    const node = file(Buffer.concat(parts), wish.changedMs);
    node.properties = before?.properties ?? [];
    this.#put(path, node);
    return this.#resource(path, node);
  }

  makeCollection(path: readonly string[], tokens: SubmittedTokens): Promise<void> {
    this.#checkMembership(path, tokens);
    if (this.#find(path) !== undefined) return Promise.reject(taken());
    this.#put(path, folder());
    return Promise.resolve();
  }

  remove(path: readonly string[], { tokens, ifMatch }: ChangeTerms): Promise<void> {
    this.#checkVersion(path, ifMatch);
    this.#checkTree(path, tokens);
    this.#checkMembership(path, tokens);
    this.#drop(path);
    return Promise.resolve();
  }

  copy(path: readonly string[], target: DavTarget, isDeep: boolean, terms: ChangeTerms): Promise<void> {
    const { to } = target;
    const { tokens } = terms;
    this.#checkVersion(path, terms.ifMatch);
    this.#checkTarget(target);
    this.#checkTree(to, tokens);
    this.#checkMembership(to, tokens);
    const copied = copyOf(this.#need(path), isDeep);
    this.#drop(to);
    this.#put(to, copied);
    return Promise.resolve();
  }

  move(path: readonly string[], target: DavTarget, terms: ChangeTerms): Promise<void> {
    const { to } = target;
    const { tokens } = terms;
    this.#checkVersion(path, terms.ifMatch);
    this.#checkTarget(target);
    this.#checkTree(path, tokens);
    this.#checkTree(to, tokens);
    this.#checkMembership(path, tokens);
    this.#checkMembership(to, tokens);
    const node = this.#need(path);
    this.#drop(path);
    this.#drop(to);
    this.#put(to, node);
    return Promise.resolve();
  }

  lock(
    path: readonly string[],
    wish: LockWish,
    tokens: SubmittedTokens,
  ): Promise<{ readonly lock: DavLock; readonly hasMadeFile: boolean }> {
    const others = this.#locks.filter(
      (lock) => covers(lock, path) || (wish.isDeep && isWithin(lock.root, path)),
    );
    if (others.some((lock) => lock.scope === "exclusive" || wish.scope === "exclusive")) throw locked();
    const hasMadeFile = this.#find(path) === undefined;
    if (hasMadeFile) {
      this.#checkMembership(path, tokens);
      this.#put(path, file(Buffer.alloc(0), 0));
    }
    const { scope, isDeep, owner, seconds } = wish;
    const lock = {
      token: `urn:uuid:${randomUUID()}`,
      root: path,
      scope,
      isDeep,
      owner,
      secondsLeft: seconds,
    };
    this.#locks.push(lock);
    return Promise.resolve({ lock, hasMadeFile });
  }

  refreshLock(path: readonly string[], token: string, seconds: number): Promise<DavLock> {
    const lock = this.#locks.find((one) => one.token === token && covers(one, path));
    if (lock === undefined) throw new GroveError("NO_SUCH_LOCK", "there is no such lock");
    const refreshed = { ...lock, secondsLeft: seconds };
    this.#locks = this.#locks.map((one) => (one === lock ? refreshed : one));
    return Promise.resolve(refreshed);
  }

  unlock(path: readonly string[], token: string): Promise<void> {
    const kept = this.#locks.filter((one) => one.token !== token || !covers(one, path));
    if (kept.length === this.#locks.length) throw new GroveError("NO_SUCH_LOCK", "there is no such lock");
    this.#locks = kept;
    return Promise.resolve();
  }

  quota(): Promise<{ readonly available: number; readonly used: number }> {
    return Promise.resolve({ available: 1_000_000, used: 24_000 });
  }

  #find(path: readonly string[]): Node | undefined {
    let node: Node | undefined = this.#top;
    for (const name of path) node = node?.children?.get(name);
    return node;
  }

  #need(path: readonly string[]): Node {
    const node = this.#find(path);
    if (node === undefined) throw new GroveError("NO_SUCH_PATH", "no such file or folder");
    return node;
  }

  #put(path: readonly string[], node: Node): void {
    this.#need(path.slice(0, -1)).children?.set(path.at(-1) ?? "", node);
  }

  #drop(path: readonly string[]): void {
    this.#find(path.slice(0, -1))?.children?.delete(path.at(-1) ?? "");
    this.#locks = this.#locks.filter((lock) => !isWithin(lock.root, path));
  }

  #resource(path: readonly string[], node: Node): DavResource {
    return {
      path,
      isCollection: node.children !== undefined,
      size: node.bytes.length,
      createdMs: node.changedMs,
      changedMs: node.changedMs,
      etag: node.etag,
      locks: this.#locks.filter((lock) => covers(lock, path)),
    };
  }

  /** Throws ETAG_MISMATCH unless that version is there; undefined for any. */
  #checkVersion(path: readonly string[], ifMatch: string | undefined): void {
    if (ifMatch === undefined || this.#find(path)?.etag === ifMatch) return;
    throw new GroveError("ETAG_MISMATCH", "the file has changed");
  }

  #checkTarget({ to, mayReplace, ifMatch }: DavTarget): void {
    this.#checkVersion(to, ifMatch);
    if (!mayReplace && this.#find(to) !== undefined) throw taken();
  }

  /** Throws LOCKED where a lock holds at the resource whose token was not submitted. */
  #checkLock(path: readonly string[], tokens: SubmittedTokens): void {
    const held = this.#locks.filter((lock) => covers(lock, path));
    if (held.length > 0 && !held.some(({ token }) => tokens.includes(token))) throw locked();
  }

  /** The same for the collection whose members change. */
  #checkMembership(path: readonly string[], tokens: SubmittedTokens): void {
    if (path.length > 0) this.#checkLock(path.slice(0, -1), tokens);
  }

  /** The same for a resource and all below. */
  #checkTree(path: readonly string[], tokens: SubmittedTokens): void {
    this.#checkLock(path, tokens);
    for (const { root } of this.#locks.filter((lock) => isWithin(lock.root, path)))
      this.#checkLock(root, tokens);
  }
}

function covers(lock: DavLock, path: readonly string[]): boolean {
  return lock.root.length === path.length || lock.isDeep ? isWithin(path, lock.root) : false;
}

function isWithin(path: readonly string[], above: readonly string[]): boolean {
  return above.length <= path.length && above.every((name, index) => path[index] === name);
}

function taken(): GroveError {
  return new GroveError("PATH_EXISTS", "the name is taken");
}

function locked(): GroveError {
  return new GroveError("LOCKED", "somebody has locked it");
}

function folder(): Node {
  return {
    children: new Map(),
    bytes: Buffer.alloc(0),
    changedMs: Date.now(),
    etag: `v${++versions}`,
    properties: [],
  };
}

function file(bytes: Buffer, changedMs: number): Node {
  return {
    children: undefined,
    bytes,
    changedMs: changedMs === 0 ? Date.now() : changedMs,
    etag: `v${++versions}`,
    properties: [],
  };
}

function copyOf(node: Node, isDeep: boolean): Node {
  const made = node.children === undefined ? file(node.bytes, node.changedMs) : folder();
  made.properties = node.properties;
  if (isDeep) for (const [name, child] of node.children ?? []) made.children?.set(name, copyOf(child, true));
  return made;
}
