// What is in a folder of the cluster before an upload into it, so that only what differs is sent.

import { type Cluster, LONG } from "#client/connection/cluster.ts";
import { isFolder, listPages } from "#client/connection/listing.ts";
import type { RemotePath } from "#client/connection/remote-path.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { FileThere } from "./sameness.ts";

/** As much of an entry as a comparison needs. */
export interface EntryThere extends FileThere {
  readonly isFolder: boolean;
  /** True for a folder with nothing in it. */
  readonly isEmpty: boolean;
  /** True for a file whose stored bytes are wrong: it is sent again whatever it says. */
  readonly isDamaged: boolean;
}

/** An entry as a listing or a look at it alone shows it. */
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

/** The entries of a folder that nothing of this machine has been found for yet. */
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

  /** Takes out what has this name; undefined when nothing has. */
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
