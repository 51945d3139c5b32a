// Names and directories of chunk files: random names in 256 directories, filled one after the other.
import { join } from "node:path";

/** Directory of the chunk files inside the data directory. */
export const CHUNKS_DIRECTORY = "chunks";
/** Directories below chunks/, named 00 to ff. */
export const CHUNK_DIRECTORIES: readonly string[] = Array.from({ length: 256 }, (_, number) =>
  number.toString(16).padStart(2, "0"),
);
/** Random bytes in a chunk's name, behind the byte that names its directory. */
export const CHUNK_NAME_RANDOM_BYTES = 15;

const CHUNK_NAME = /^[0-9a-f]{32}$/;

/** True for a valid chunk file name: 32 hexadecimal digits. */
export function isChunkName(name: string): boolean {
  return CHUNK_NAME.test(name);
}

/** Name of the directory below chunks/ that holds the chunk. */
export function directoryOfChunk(name: string): string {
  return name.slice(0, 2);
}

/** Path of a chunk file. */
export function chunkPath(dataDirectory: string, name: string): string {
  return join(dataDirectory, CHUNKS_DIRECTORY, directoryOfChunk(name), name);
}

/** The directory to fill after this one. */
export function nextDirectory(directory: string | undefined): string {
  const number = directory === undefined ? 0 : (Number.parseInt(directory, 16) + 1) % 256;
  return CHUNK_DIRECTORIES[number] ?? "00";
}
