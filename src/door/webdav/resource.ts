// What the WebDAV methods need of a tree of files, as an interface.
import type { ByteRange } from "./byte-ranges.ts";

/** One lock on a resource (RFC 4918, section 6). */
export interface DavLock {
  /** An URI, "urn:uuid:…"; empty for others than the holder. */
  readonly token: string;
  /** Names from the top to the resource that was locked. */
  readonly root: readonly string[];
  readonly scope: "exclusive" | "shared";
  /** True for a lock on everything below as well. */
  readonly isDeep: boolean;
  /** Text of the owner element as the client sent it; XML, empty for none. */
  readonly owner: string;
  /** Seconds until it ends unless refreshed. */
  readonly secondsLeft: number;
}

/** A file or a collection. */
export interface DavResource {
  /** Names from the top; none for the top itself. */
  readonly path: readonly string[];
  readonly isCollection: boolean;
  readonly size: number;
  readonly createdMs: number;
  readonly changedMs: number;
  /** Without quotes. */
  readonly etag: string;
  /** False where it is known to have no dead properties. */
  readonly mayHaveProperties?: boolean;
  /** Locks that hold here, those of collections above included. */
  readonly locks: readonly DavLock[];
}

/** A dead property: kept, not understood. */
export interface DeadProperty {
  readonly namespace: string;
  readonly name: string;
  /** The whole element as XML, its namespaces declared in it. */
  readonly xml: string;
}

/** One step of a PROPPATCH. */
export type PropertyChange =
  | { readonly kind: "set"; readonly property: DeadProperty }
  | { readonly kind: "remove"; readonly namespace: string; readonly name: string };

/** What a PUT wants. */
export interface WriteWish {
  /** Bytes of the body; undefined where the length is unknown. */
  readonly size: number | undefined;
  /** Bytes that the client expects to send where it promises none: enough to ask for room. */
  readonly expectedBytes?: number | undefined;
  /** True where the client sends its body once it is told to: a refusal comes before. */
  readonly awaitsContinue?: boolean;
  /** The version that is replaced; undefined for any. */
  readonly ifMatch: string | undefined;
  /** True where nothing may be there yet. */
  readonly mustBeNew: boolean;
  /** True where something was there a moment ago. */
  readonly isThere?: boolean;
  /** Unix milliseconds; 0 means now. */
  readonly changedMs: number;
}

/** A small file that is made in one step. */
export interface NewFile {
  /** At most INLINE_FILE_MAX_BYTES. */
  readonly data: Uint8Array;
  /** Unix milliseconds; 0 means now. */
  readonly changedMs: number;
  readonly tokens: SubmittedTokens;
}

/** A resource, with all its bytes where it is a file of few. */
export interface Fetched {
  readonly resource: DavResource;
  readonly data?: Uint8Array | undefined;
}

/** Where a copy or a move goes. */
export interface DavTarget {
  readonly to: readonly string[];
  /** True where what is there may be replaced; else PATH_EXISTS. */
  readonly mayReplace: boolean;
  /** The version that is replaced, so that something must be there; undefined for any. */
  readonly ifMatch?: string | undefined;
}

/** What a LOCK wants. */
export interface LockWish {
  readonly scope: "exclusive" | "shared";
  readonly isDeep: boolean;
  readonly owner: string;
  readonly seconds: number;
}

/** The tokens that a request submits in its If header: changes of locked resources need theirs. */
export type SubmittedTokens = readonly string[];

/** What a removal, copy or move must find; judged in one step with the change. */
export interface ChangeTerms {
  readonly tokens: SubmittedTokens;
  /** The version that is removed, copied or moved; else ETAG_MISMATCH. Undefined for any. */
  readonly ifMatch?: string | undefined;
}

/** Takes the next bytes of a file, in the parts that came. Those after them come once a promise has resolved. */
export type BytesTaker = (parts: readonly Uint8Array[]) => true | Promise<void>;

/**
 * A tree of files for one person. Every method decides for itself whether that person may, and throws a
 * GroveError that names the refusal.
 */
export interface DavTree {
  /** The resource, or undefined where there is none. Its locks are asked for where `withLocks` says so. */
  look(path: readonly string[], withLocks?: boolean): Promise<DavResource | undefined>;
  /** The resource without its locks, and the bytes of a small file; undefined where there is none. */
  fetch(path: readonly string[]): Promise<Fetched | undefined>;
  /** What lies directly in a collection, many entries at a time. */
  list(path: readonly string[]): AsyncIterable<readonly DavResource[]>;
  properties(path: readonly string[]): Promise<readonly DeadProperty[]>;
  /** All changes or none. */
  changeProperties(
    path: readonly string[],
    changes: readonly PropertyChange[],
    tokens: SubmittedTokens,
  ): Promise<void>;
  /** Hands the bytes of that version of a file on, and resolves after the last. Rejects as `take` does. */
  read(path: readonly string[], etag: string, range: ByteRange, take: BytesTaker): Promise<void>;
  /** Makes a new file; undefined, and nothing is made, where something is there or no folder for it. */
  create(path: readonly string[], file: NewFile): Promise<DavResource | undefined>;
  write(
    path: readonly string[],
    body: AsyncIterable<Uint8Array>,
    wish: WriteWish,
    tokens: SubmittedTokens,
  ): Promise<DavResource>;
  makeCollection(path: readonly string[], tokens: SubmittedTokens): Promise<void>;
  remove(path: readonly string[], terms: ChangeTerms): Promise<void>;
  /** `isDeep` false copies a collection without what is in it. */
  copy(path: readonly string[], target: DavTarget, isDeep: boolean, terms: ChangeTerms): Promise<void>;
  move(path: readonly string[], target: DavTarget, terms: ChangeTerms): Promise<void>;
  /** Makes an empty file where nothing is (RFC 4918, section 7.3). */
  lock(
    path: readonly string[],
    wish: LockWish,
    tokens: SubmittedTokens,
  ): Promise<{ readonly lock: DavLock; readonly hasMadeFile: boolean }>;
  refreshLock(path: readonly string[], token: string, seconds: number): Promise<DavLock>;
  unlock(path: readonly string[], token: string): Promise<void>;
  /** Bytes free and used for who pays for that place; undefined where it is not known. */
  quota(path: readonly string[]): Promise<{ readonly available: number; readonly used: number } | undefined>;
}
