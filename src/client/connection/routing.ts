// Finds the FileServer that holds a root: in the cached routes, else at the MetaServer (spec 4.5, T20).

import type { MessageInitShape } from "@bufbuild/protobuf";
import { systemClock } from "#base/clock.ts";
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { ROUTE_TTL_SECONDS } from "#base/limits.ts";
import { judgedByClocks } from "#client/signin/clock-refusal.ts";
import { type Profile, parseAddress } from "#client/signin/profile.ts";
import { openChannel, requireSafeForToken } from "#client/signin/server-address.ts";
import { ClientError, isClientError } from "#client/terminal/client-error.ts";
import { SIGN_IN_CALL_TIMEOUT_MS } from "#client/terminal/limits.ts";
import { Code, type StatusError } from "#wire/framing/status.ts";
import type { Client, GrpcChannel } from "#wire/grpc/client.ts";
import type {
  AppPassword,
  BrowserSession,
  CreateAppPasswordRequestSchema,
  CreateAppPasswordResponse,
  GetRootsResponse,
  MetaServer,
  Root,
} from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { errorCodeOf, REASON_TRAILER } from "#wire/proto/status-table.ts";
import { callMetadata, requestMetadata } from "./call-metadata.ts";
import type { DoorSide } from "./door-side.ts";
import type { IdentityHolder } from "./identity-holder.ts";
import { pages } from "./pages.ts";
import { refusalOf } from "./refusal.ts";
import type { Route, RouteCache } from "./route-cache.ts";

/** Dependencies of a router. */
export interface RouterDeps {
  readonly profile: Profile;
  readonly identity: Pick<IdentityHolder, "idToken" | "hasToken">;
  readonly cache: RouteCache;
  readonly signal: AbortSignal;
  /** In a door: in the place of the ID token. */
  readonly door?: DoorSide | undefined;
}

interface Connection {
  readonly channel: GrpcChannel;
  readonly client: Client<typeof MetaServer>;
}

/** Refusals of one MetaServer that another may not give: its store, identity provider or load. */
const OF_ONE_SERVER: readonly (ErrorCode | undefined)[] = [
  "STORE_UNAVAILABLE",
  "IDP_UNAVAILABLE",
  "OVERLOADED",
];

/** Finds the servers of roots. */
export class Router {
  readonly #deps: RouterDeps;
  #connection: Connection | undefined;
  readonly #asking = new Map<string, Promise<Route>>();
  readonly #told = new WeakSet<Route>();

  constructor(deps: RouterDeps) {
    this.#deps = deps;
  }

  /** The fresh route to a root that needs no wait. */
  known(root: string): Route | undefined {
    return this.#deps.profile.fileserver === undefined ? this.#deps.cache.known(root) : undefined;
  }

  /**
   * The route to a root (empty: one's own), from the cache where it is fresh. While no metaserver can answer,
   * the last known route serves: a server without the root refuses.
   */
  async find(root: string): Promise<Route> {
    const { fileserver } = this.#deps.profile;
    if (fileserver !== undefined) {
      return { root, address: fileserver, fsId: "", expiresAtMs: Number.POSITIVE_INFINITY };
    }
    const fresh = await this.#deps.cache.get(root);
    if (fresh !== undefined) return fresh;
    try {
      return await this.ask(root);
    } catch (error) {
      const last = canNobodySay(error) ? await this.#deps.cache.last(root) : undefined;
      if (last === undefined) throw error;
      return last;
    }
  }

  /** True for a route that this process got from the MetaServer, so that asking again is useless. */
  isFresh(route: Route): boolean {
    return this.#told.has(route);
  }

  /** Asks the MetaServer, and keeps the answer. */
  ask(root: string): Promise<Route> {
    const running = this.#asking.get(root);
    if (running !== undefined) return running;
    const asked = this.#navigate(root).finally(() => this.#asking.delete(root));
    this.#asking.set(root, asked);
    return asked;
  }

  /** Asks again for a root whose server does not answer; undefined without a new answer. */
  async askAgain(stale: Route): Promise<Route | undefined> {
    const { profile, identity } = this.#deps;
    if (profile.fileserver !== undefined || profile.metaservers.length === 0) return undefined;
    if (!(await identity.hasToken())) return undefined;
    try {
      const route = await this.ask(stale.root);
      return route.address === stale.address ? undefined : route;
    } catch {
      // The error about the silent server is the one to report.
      return undefined;
    }
  }

  /** Keeps the new address of a root that a server has reported as moved. */
  async moved(root: string, address: string): Promise<Route> {
    const route = { root, address: this.#checked(address), fsId: "" };
    if (this.#deps.profile.fileserver !== undefined) {
      throw new ClientError("USAGE", `that root lives on the server ${route.address}`, {
        todo: "Name that server with --fileserver, or leave it out and let the metaserver find it.",
      });
    }
    return this.#deps.cache.put(route, ROUTE_TTL_SECONDS);
  }

  /** One's own root and the roots shared with one, as the MetaServer knows them. */
  async roots(): Promise<Root[]> {
    const read = (pageToken: string): Promise<GetRootsResponse> =>
      this.#call((client, options) => client.getRoots({ pageToken }, options));
    const roots: Root[] = [];
    for await (const page of pages(read, (page) => page.roots, "the metaserver's list of roots")) {
      roots.push(...page.roots);
    }
    return roots;
  }

  /** Address of a door of the cluster; empty where nobody knows one. */
  async doorUrl(): Promise<string> {
    if (this.#deps.profile.metaservers.length === 0) return "";
    return (await this.#call((client, options) => client.navigate({ root: "", path: "/" }, options))).doorUrl;
  }

  /** Makes an app password. The sign-in has to be of the last ten minutes, as for the two after it. */
  createAppPassword(
    request: MessageInitShape<typeof CreateAppPasswordRequestSchema>,
  ): Promise<CreateAppPasswordResponse> {
    return this.#call((client, options) => client.createAppPassword(request, options));
  }

  /** The user's app passwords, the oldest first. */
  async listAppPasswords(): Promise<AppPassword[]> {
    return (await this.#call((client, options) => client.listAppPasswords({}, options))).appPasswords;
  }

  /** Ends an app password by name or id, and returns it. */
  async revokeAppPassword(which: string): Promise<AppPassword | undefined> {
    return (await this.#call((client, options) => client.revokeAppPassword({ which }, options))).revoked;
  }

  /** The user's sessions of browsers at doors, the latest first; for a sign-in of the last ten minutes as well. */
  async listBrowserSessions(): Promise<BrowserSession[]> {
    return (await this.#call((client, options) => client.listBrowserSessions({}, options))).sessions;
  }

  /** Ends one of them by its id, or all without one; returns those that ended. */
  async endBrowserSessions(id?: string): Promise<BrowserSession[]> {
    const which =
      id === undefined ? ({ case: "others", value: true } as const) : ({ case: "id", value: id } as const);
    return (await this.#call((client, options) => client.endBrowserSessions({ which }, options))).ended;
  }

  /** True when the user wants no notices. */
  async noticesOff(): Promise<boolean> {
    return (await this.#call((client, options) => client.getNotices({}, options))).off;
  }

  /** Turns the user's notices off, or on again. */
  async setNoticesOff(off: boolean): Promise<void> {
    await this.#call((client, options) => client.setNotices({ off }, options));
  }

  /** Closes the connection to the MetaServer. */
  close(): void {
    this.#connection?.channel.close();
  }

  async #navigate(root: string): Promise<Route> {
    const reply = await this.#call((client, options) => client.navigate({ root, path: "/" }, options));
    const route = { root, address: this.#checked(reply.address), fsId: reply.fsId };
    const kept = await this.#deps.cache.put(route, reply.ttlSeconds);
    this.#told.add(kept);
    return kept;
  }

  async #call<T>(
    operation: (
      client: Client<typeof MetaServer>,
      options: { metadata: Record<string, string>; timeoutMs: number; signal: AbortSignal },
    ) => Promise<T>,
  ): Promise<T> {
    const { door } = this.#deps;
    const token =
      door === undefined ? await this.#deps.identity.idToken("the way to your files must be asked for") : "";
    const metaservers = this.#metaservers();
    for (const address of metaservers) requireSafeForToken(this.#deps.profile, address, token);
    const { channel, client } = this.#connection ?? (await this.#connect(metaservers));
    // The id of the request stays the same on every server.
    const options = {
      metadata: door === undefined ? callMetadata(token) : { ...requestMetadata(), ...door.routeMetadata() },
      timeoutMs: SIGN_IN_CALL_TIMEOUT_MS / Math.min(metaservers.length, 2),
      signal: this.#deps.signal,
    };
    try {
      return await channel.onAnyServer(() => operation(client, options), canAnotherHelp);
    } catch (error) {
      const peer = metaservers.join(", ");
      throw judgedByClocks(await refusalOf(error, peer), { peer, token, nowMs: systemClock.wallMs() });
    }
  }

  /** Loads the protocol of the MetaServer on first use: most commands have a cached route. */
  async #connect(metaservers: readonly [string, ...string[]]): Promise<Connection> {
    const [{ createClient }, protocol] = await Promise.all([
      import("#wire/grpc/client.ts"),
      import("#wire/proto/gen/grove/v1/meta_server_pb.ts"),
    ]);
    // Another call may have been faster.
    if (this.#connection !== undefined) return this.#connection;
    const channel = openChannel(this.#deps.profile, metaservers[0], metaservers);
    this.#connection = { channel, client: createClient(protocol.MetaServer, channel) };
    return this.#connection;
  }

  #metaservers(): readonly [string, ...string[]] {
    const [first, ...rest] = this.#deps.profile.metaservers;
    if (first !== undefined) return [first, ...rest];
    throw new ClientError("USAGE", "it is not known which cluster you mean", {
      todo: "Sign in with the cluster's file (grove login --cluster FILE), or name its metaserver with --metaserver HOST:PORT.",
    });
  }

  /** Checks an address from a server like a typed one: it becomes a file name and a connection. */
  #checked(address: string): string {
    try {
      return parseAddress(address);
    } catch (cause) {
      throw new ClientError("SERVER_BROKEN", "the address of a server that was sent is none", { cause });
    }
  }
}

/** True for a failure that says nothing of the root: no metaserver answers, or all lack a dependency. */
function canNobodySay(error: unknown): boolean {
  return (
    isClientError(error, "NETWORK") ||
    isGroveError(error, "STORE_UNAVAILABLE", "IDP_UNAVAILABLE", "OVERLOADED")
  );
}

/** True when another MetaServer may give the answer. */
function canAnotherHelp(error: StatusError): boolean {
  const reason = errorCodeOf(error.metadata.get(REASON_TRAILER));
  if (reason !== undefined) return OF_ONE_SERVER.includes(reason);
  return error.code === Code.UNAVAILABLE || error.code === Code.DEADLINE_EXCEEDED;
}
