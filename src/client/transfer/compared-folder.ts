// Reads a folder of the cluster before an upload into it, so that only differences are sent.

import { type Cluster, LONG } from "#client/connection/cluster.ts";
import { isFolder, listPages } from "#client/connection/listing.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { FileThere } from "./sameness.ts";

/** The fields of an entry that a comparison needs. */
export interface EntryThere extends FileThere {
  readonly isFolder: boolean;
  /** True for an empty folder. */
  readonly isEmpty: boolean;
  /** True for a file whose stored bytes are wrong: it is always sent again. */
  readonly isDamaged: boolean;
}

/** An entry from a listing or a single lookup. */
export function entryThere(attr: Attr): EntryThere {
  return {
    isFolder: isFolder(attr),
    isEmpty: attr.childCount === 0n,
    isDamaged: attr.damaged,
    sizeBytes: Number(attr.size),
    mtimeMs: Number(attr.mtimeMs),
    crc32: attr.crc32,
  };
}

/** The entries of a folder without a counterpart on this machine so far. */
export class ComparedFolder {
  readonly #entries = new Map<string, EntryThere>();

  /** Reads the listing of a folder. */
  static async read(cluster: Cluster, place: RemotePath): Promise<ComparedFolder> {
    const folder = new ComparedFolder();
    for await (const page of listPages(cluster, place, { patience: LONG })) {
      for (const attr of page) folder.#entries.set(attr.name, entryThere(attr));
    }
    return folder;
  }

  /** Takes out the entry of this name; undefined without one. */
  take(name: string): EntryThere | undefined {
    const entry = this.#entries.get(name);
    this.#entries.delete(name);
    return entry;
  }

  /** What was not taken out, by name. */
  rest(): Iterable<readonly [string, EntryThere]> {
    return this.#entries;
  }
}
