// Reads from the MetaServer which addresses an operator has rebound to other persons (D21).
import type { ReboundSubject } from "#security/identity/subject-registry.ts";
import type { Client } from "#wire/grpc/client.ts";
import type { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** An operator's word on an address; with a former one for a person whose address has changed. */
export type ReboundAddress = ReboundSubject & { readonly formerUsername: string };

/** Dependencies of a reader. */
export interface ReboundReaderDeps {
  readonly client: Pick<Client<typeof MetaServer>, "listReboundSubjects">;
  readonly fsId: string;
  /** Takes a page of them; after a throw they are read again. */
  readonly onRebound: (words: readonly ReboundAddress[]) => Promise<void>;
  readonly timeoutMs: number;
}

/** Reads each of them once in the life of the process, even those that the data folder knows already. */
export class ReboundReader {
  readonly #deps: ReboundReaderDeps;
  #after = { afterVersion: 0n, afterUsername: "" };
  #readUpTo = 0n;

  constructor(deps: ReboundReaderDeps) {
    this.#deps = deps;
  }

  /** True when there is more than what was read. */
  isBehind(version: bigint): boolean {
    return version > this.#readUpTo;
  }

  /** Reads the new ones, page by page. */
  async read(epoch: bigint): Promise<void> {
    const { client, fsId, onRebound, timeoutMs } = this.#deps;
    for (;;) {
      const request = { fsId, epoch, ...this.#after };
      const { subjects } = await client.listReboundSubjects(request, { timeoutMs });
      const last = subjects.at(-1);
      // The question after the last page tells the MetaServer that all of it is carried out.
      if (last === undefined) break;
      await onRebound(subjects);
      this.#after = { afterVersion: last.version, afterUsername: last.username };
    }
    this.#readUpTo = this.#after.afterVersion;
  }
}
