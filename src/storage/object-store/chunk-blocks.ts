// The port for blocks of names: rows that are durable before the first object has a name of theirs.

/** Names of one block. */
export const NAMES_PER_BLOCK = 256;

/** A block of names that one holder of a root may use. */
export interface ChunkBlock {
  /** 128 random bits as 32 hexadecimal digits: a restored database that counted would meet living chunks. */
  readonly id: string;
  readonly rootId: string;
  /** The epoch of the lease under which its names are used. */
  readonly epoch: number;
  /** Wall time at which it was made. */
  readonly sinceMs: number;
}

/** A block whose names are used no more: it was closed, or its epoch has ended. */
export interface EndedBlock extends ChunkBlock {
  /** Wall time of the database at which that was first known. */
  readonly endedMs: number;
  /** True after the first sweep. */
  readonly isSweptOnce: boolean;
}

/** A place in the order of ended blocks. */
export type BlockPlace = Pick<EndedBlock, "endedMs" | "id">;

/** Which ended blocks are asked for. */
export interface EndedSelect {
  readonly beforeMs: number;
  readonly isSweptOnce: boolean;
  readonly after?: BlockPlace | undefined;
  readonly limit: number;
}

/** Rows of blocks; the engine keeps them beside those of chunks. */
export interface ChunkBlocks {
  /** Resolves when the block's row is durable. Rejected when the epoch is not the root's any more. */
  add(block: ChunkBlock): Promise<void>;
  /** Removes a block of which each name has a row of its own or surely no object. */
  drop(id: string): Promise<void>;
  /** Marks a block of a living epoch as ended, so that it is swept like those of finished ones. */
  close(id: string): Promise<void>;
  /** Blocks that ended before a time and are swept once or not, the oldest first; with a place, those behind it. */
  ended(select: EndedSelect): Promise<readonly EndedBlock[]>;
  /** Those of the names that a row keeps: of a chunk, or of one that waits for its removal. */
  kept(names: readonly string[]): Promise<ReadonlySet<string>>;
  /** Remembers the first sweep of a block. */
  sweptOnce(id: string): Promise<void>;
}

/** The name of a chunk: its block's id, then its number of two digits. */
export function chunkName(blockId: string, number: number): string {
  return blockId + number.toString(16).padStart(2, "0");
}

/** Id of the block that a name is from. */
export function blockOf(name: string): string {
  return name.slice(0, -2);
}

/** All names of a block. */
export function namesOf(blockId: string): string[] {
  return Array.from({ length: NAMES_PER_BLOCK }, (_, number) => chunkName(blockId, number));
}

/** The object's key. 256 groups below the prefix spread the load, and the folders of stores that have folders. */
export function chunkKey(prefix: string, name: string): string {
  return `${prefix}chunks/${name.slice(0, 2)}/${name}`;
}

/** The chunk's name of a key; undefined for anything else. */
export function nameOfKey(prefix: string, key: string): string | undefined {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return /^[0-9a-f]{34}$/.test(name) && key === chunkKey(prefix, name) ? name : undefined;
}
