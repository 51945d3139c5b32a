// Splits the list of a node's roots into pages that each fit into one message (D19).
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DepartedRootSchema, RootInfoSchema } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** Bytes of one page of a registration: some 7,000 roots. */
const REGISTRATION_PAGE_BYTES = 786_432;

/** A root as a registration lists it. */
export type ListedRoot = MessageInitShape<typeof RootInfoSchema>;

/** A root that has left, as a registration lists it. */
export type GoneRoot = MessageInitShape<typeof DepartedRootSchema>;

/** Bytes of a root in a message: tags, lengths, the version. */
const ROOT_HEAD_BYTES = 32;
/** Bytes of a grant beside its path and user in a message: tags and lengths. */
const GRANT_HEAD_BYTES = 10;

/** Bytes that a root's grants take in a message, rounded up. */
export function grantBytes(grants: Iterable<{ readonly path: string; readonly user: string }>): number {
  let bytes = 0;
  for (const { path, user } of grants) {
    bytes += GRANT_HEAD_BYTES + Buffer.byteLength(path) + Buffer.byteLength(user);
  }
  return bytes;
}

/** The person behind an address, as a node knows them. */
interface KnownPerson {
  readonly issuer: string;
  readonly subject: string;
  readonly version?: bigint;
}

/** A root, and its owner's known person. */
export function withPerson(root: ListedRoot, known: KnownPerson | undefined): ListedRoot {
  if (known === undefined) return root;
  const { issuer, subject, version = 0n } = known;
  return { ...root, issuer, subject, subjectVersion: version };
}

/** A page of a registration. */
export interface ListedPage {
  readonly roots: ListedRoot[];
  readonly departed: GoneRoot[];
}

/** The roots in their order, then those that have left, in pages of at most 768 KiB; at least one, perhaps empty. */
export function registrationPages(
  roots: readonly ListedRoot[],
  departed: readonly GoneRoot[] = [],
): ListedPage[] {
  let page: ListedPage = { roots: [], departed: [] };
  const pages = [page];
  let bytes = 0;
  const makeRoom = (size: number): void => {
    if (bytes > 0 && bytes + size > REGISTRATION_PAGE_BYTES) {
      page = { roots: [], departed: [] };
      pages.push(page);
      bytes = 0;
    }
    bytes += size;
  };
  for (const root of roots) {
    makeRoom(rootBytes(root));
    page.roots.push(root);
  }
  for (const root of departed) {
    makeRoom(goneBytes(root));
    page.departed.push(root);
  }
  return pages;
}

function goneBytes({ rootId = "", fsId = "", moveId = "" }: GoneRoot): number {
  return GRANT_HEAD_BYTES + [rootId, fsId, moveId].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

function rootBytes(root: ListedRoot): number {
  const { owner = "", rootId = "", issuer = "", subject = "", arrival = "", grants = [] } = root;
  const words = [owner, rootId, issuer, subject, arrival].reduce(
    (sum, text) => sum + Buffer.byteLength(text),
    0,
  );
  const granted = grants.map(({ path = "", user = "" }) => ({ path, user }));
  return ROOT_HEAD_BYTES + words + grantBytes(granted);
}
