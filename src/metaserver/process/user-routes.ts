// The user plane's routes: the roots that a signed-in user can reach, and their FileServers (spec 4.5, D19).
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import type { HandOver } from "#base/hand-over.ts";
import { INHERITED_ROOTS_LISTED_MAX, ROUTE_TTL_SECONDS, SHARED_ROOTS_LISTED_MAX } from "#base/limits.ts";
import { canonicalUsername, joinPath, splitPath } from "#base/names.ts";
import type { Directory, LocatedRoot, SharedRoot, SharePlace } from "#metaserver/directory/directory.ts";
import type { TokenVerifier } from "#security/identity/token-verifier.ts";
import type { CallContext, ServiceHandlers } from "#wire/grpc/handler.ts";
import type { MetaServer, Root } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { handOverMessage } from "#wire/proto/user-state-message.ts";
import { idTokenOf } from "./call-gate.ts";
import type { SubjectGate } from "./subject-gate.ts";
import type { UserStateGate } from "./user-state-gate.ts";

/** Bytes of shared roots in one page of GetRoots: far below the default limit of gRPC clients. */
const SHARED_ROOTS_PAGE_BYTES = 1_048_576;

/** Dependencies of the routes. */
export interface UserRoutesDeps {
  readonly directory: Directory;
  readonly tokenVerifier: TokenVerifier;
  readonly subjects: SubjectGate;
  readonly userStates: Pick<UserStateGate, "requireEntry" | "states">;
  readonly clock: Pick<Clock, "wallMs">;
}

/** Bytes of a root in a message beside its texts: its id, tags and lengths. */
const ROOT_HEAD_BYTES = 64;

interface ListedRoot extends LocatedRoot {
  readonly path: string;
  readonly handOvers?: readonly HandOver[];
}

/** The handlers of the user plane. */
export type UserRoutes = Pick<ServiceHandlers<typeof MetaServer>, "getRoots" | "navigate">;

/** Makes the handlers. */
export function userRoutes(deps: UserRoutesDeps): UserRoutes {
  const { directory, clock } = deps;
  const { states } = deps.userStates;
  return {
    async getRoots(request, context) {
      const user = await requireUser(context, deps);
      const after = readPageToken(request.pageToken);
      const found = await directory.rootsSharedWith(user, after);
      const shared = firstPage(found);
      const isAll = shared.length === found.length && found.length < SHARED_ROOTS_LISTED_MAX;
      const last = isAll ? undefined : shared.at(-1);
      const nextPageToken = last === undefined ? "" : pageToken(last);
      if (after !== undefined) return { roots: shared.map(toRoot), nextPageToken };
      const inherited = await inheritedRoots(user);
      const own = await directory.locateRoot(user).catch((error: unknown) => {
        // A visitor whose own root has no place yet still sees shared ones.
        if (shared.length + inherited.length > 0 && isGroveError(error, "STARTING", "NODE_DRAINING"))
          return undefined;
        throw error;
      });
      const handOvers = states.handOversOf(user, clock.wallMs());
      const first = own === undefined ? [] : [{ ...own, path: "/", handOvers }];
      return { roots: [...first, ...inherited, ...shared].map(toRoot), nextPageToken };
    },

    async navigate(request, context) {
      const user = await requireUser(context, deps);
      const owner = request.root === "" ? user : canonicalUsername(request.root);
      const path = joinPath(splitPath(request.path === "" ? "/" : request.path));
      const root =
        owner === user
          ? await directory.locateRoot(user)
          : states.handOverTo(user, owner, clock.wallMs()) === undefined
            ? await directory.sharedRoot(user, { owner, path })
            : await directory.findRoot(owner);
      // A caller without a share on that way does not learn whether the root exists (D1).
      if (root === undefined) {
        throw new GroveError("NOT_SHARED", "nothing on this way is shared with you");
      }
      if (root.address === "") {
        throw new GroveError(
          "STARTING",
          "the FileServer that holds this root has not come back yet; try again",
        );
      }
      const { fsId, address, rootId } = root;
      return { fsId, address, rootId, path, ttlSeconds: ROUTE_TTL_SECONDS, readOnly: false };
    },
  };

  /** The roots handed over to a user; the first page of them. */
  async function inheritedRoots(user: string): Promise<ListedRoot[]> {
    const roots: ListedRoot[] = [];
    for (const { owner, ...handOver } of states.inheritedBy(user, clock.wallMs())) {
      if (roots.length === INHERITED_ROOTS_LISTED_MAX) break;
      const root = await directory.findRoot(owner);
      // A user without a root has none to hand over.
      if (root !== undefined) roots.push({ ...root, path: "/", handOvers: [handOver] });
    }
    return roots;
  }
}

/** The username behind the call's ID token. Throws the errors of verification and of the subject gate. */
async function requireUser(context: CallContext, deps: UserRoutesDeps): Promise<string> {
  const token = idTokenOf(context);
  const { identity, issuedAtWallMs } = await deps.tokenVerifier.verify(token, context.peer.address);
  deps.userStates.requireEntry(identity, issuedAtWallMs);
  await deps.subjects.admit(identity);
  return identity.username;
}

/** The shared roots that fit into a page; paths have up to 4 KB each. */
function firstPage(shared: readonly SharedRoot[]): readonly SharedRoot[] {
  let bytes = 0;
  const beyond = shared.findIndex(({ owner, path, address, fsId }) => {
    bytes += ROOT_HEAD_BYTES + Buffer.byteLength(owner + path + address + fsId);
    return bytes > SHARED_ROOTS_PAGE_BYTES;
  });
  return beyond < 0 ? shared : shared.slice(0, beyond);
}

/** The start of the next page, as opaque text for the client. */
function pageToken({ owner, path }: SharePlace): string {
  return Buffer.from(JSON.stringify([owner, path])).toString("base64url");
}

/** Throws BAD_ARGUMENT for a token that no reply has sent. */
function readPageToken(token: string): SharePlace | undefined {
  if (token === "") return undefined;
  try {
    const [owner, path] = JSON.parse(Buffer.from(token, "base64url").toString()) as unknown[];
    // Only what the store could have written goes back to it: other text may make a database fail.
    if (typeof owner === "string" && typeof path === "string" && isPlace(owner, path)) return { owner, path };
  } catch {
    // It is told below.
  }
  throw new GroveError("BAD_ARGUMENT", "page_token is none that this server has sent");
}

function isPlace(owner: string, path: string): boolean {
  return canonicalUsername(owner) === owner && joinPath(splitPath(path)) === path;
}

function toRoot(root: ListedRoot): Omit<Root, "$typeName" | "$unknown"> {
  const { owner, rootId, path, fsId, address, handOvers = [] } = root;
  return { owner, rootId, path, fsId, address, handOvers: handOvers.map(handOverMessage) };
}
