// Splits the list of a node's roots into pages that each fit into one message (D19).
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RootInfoSchema } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** Bytes of one page of a registration: some 7,000 roots. */
const REGISTRATION_PAGE_BYTES = 786_432;

/** A root as a registration lists it. */
export type ListedRoot = MessageInitShape<typeof RootInfoSchema>;

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

/** The roots in their order, in pages of at most 768 KiB; at least one page, which may be empty. */
export function registrationPages(roots: readonly ListedRoot[]): ListedRoot[][] {
  let page: ListedRoot[] = [];
  const pages = [page];
  let bytes = 0;
  for (const root of roots) {
    const size = rootBytes(root);
    if (page.length > 0 && bytes + size > REGISTRATION_PAGE_BYTES) {
      page = [];
      pages.push(page);
      bytes = 0;
    }
    page.push(root);
    bytes += size;
  }
  return pages;
}

function rootBytes({ owner = "", rootId = "", issuer = "", subject = "", grants = [] }: ListedRoot): number {
  const words = [owner, rootId, issuer, subject].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  const granted = grants.map(({ path = "", user = "" }) => ({ path, user }));
  return ROOT_HEAD_BYTES + words + grantBytes(granted);
}
