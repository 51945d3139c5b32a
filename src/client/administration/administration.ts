// Asks the directory and every node of a cluster at once, for the verbs of administrators.
import type { Command } from "commander";
import { GroveError } from "#base/errors.ts";
import { callMetadata } from "#client/connection/call-metadata.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import type { ClientFlags } from "#client/connection/client-flags.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { explain } from "#client/connection/error-text.ts";
import { refusalOf } from "#client/connection/refusal.ts";
import { parseAddress } from "#client/signin/profile.ts";
import { openChannel, requireSafeForToken } from "#client/signin/server-address.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { ADMINISTRATION_TIMEOUT_MS } from "#client/terminal/limits.ts";
import { type Client, createClient, type GrpcChannel } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import type { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import {
  type AdminPasswordFlags,
  askPasswordHash,
  isByPassword,
  passwordMetadata,
  requireSafeForPassword,
} from "./admin-password.ts";

/** Options of every verb that acts as an administrator. */
export interface AdministrationFlags extends AdminPasswordFlags, ClientFlags {
  readonly nodes?: string;
}

/** Adds the options. */
export function withAdministrationFlags(command: Command): Command {
  return command
    .option(
      "--admin-password",
      "use the administrator's password, asked without showing it, instead of who you are",
    )
    .option("--admin-password-stdin", "the same, read from standard input")
    .option("--nodes <host:port,…>", "these nodes, when no metaserver can tell which there are");
}

/** The answer of one server, or its problem. */
export interface Answer<T> {
  /** The node's id, or its address where no metaserver has sent it; "directory" for the metadata store. */
  readonly name: string;
  readonly address: string;
  readonly value?: T;
  /** The reason for a missing value, in words. */
  readonly problem?: string;
  readonly error?: unknown;
}

/** A node that gets an administrator's calls. */
export interface AdministeredNode {
  readonly name: string;
  readonly address: string;
}

/** A call to a node. */
export type OnNode<T> = (files: Client<typeof FileServer>, options: CallOptions) => Promise<T>;
/** A call to the directory. */
export type OnDirectory<T> = (client: Client<typeof MetaServer>, options: CallOptions) => Promise<T>;

/** The name of the metadata store among the answers. */
export const DIRECTORY = "directory";

/** The servers of a cluster, as an administrator calls them. */
export class Administration {
  readonly #context: ClientContext;
  readonly #cluster: Cluster;
  readonly #flags: AdministrationFlags;
  readonly #passwordHash: string | undefined;
  #channel: GrpcChannel | undefined;

  private constructor(
    context: ClientContext,
    parts: { cluster: Cluster; flags: AdministrationFlags; passwordHash: string | undefined },
  ) {
    this.#context = context;
    this.#cluster = parts.cluster;
    this.#flags = parts.flags;
    this.#passwordHash = parts.passwordHash;
  }

  /** Asks for the password where it is to be used. */
  static async open(context: ClientContext, flags: AdministrationFlags): Promise<Administration> {
    const cluster = await context.cluster();
    const passwordHash = isByPassword(flags) ? await askPasswordHash(context) : undefined;
    return new Administration(context, { cluster, flags, passwordHash });
  }

  /** True where the cluster has a directory besides the nodes. */
  async hasDirectory(): Promise<boolean> {
    const { fileserver, metaservers } = await this.#context.profile();
    return fileserver === undefined && metaservers.length > 0;
  }

  /** The named nodes, or those of the directory. Rejects with its refusal and the way around it. */
  async nodes(): Promise<AdministeredNode[]> {
    const { fileserver } = await this.#context.profile();
    const { nodes } = this.#flags;
    const texts = nodes === undefined ? [fileserver ?? ""] : nodes.split(",");
    const named = texts
      .map((text) => text.trim())
      .filter((text) => text !== "")
      .map(parseAddress);
    if (named.length > 0) return named.map((address) => ({ name: address, address }));
    const { error, value } = await this.onDirectory((client, options) => client.listFileServers({}, options));
    if (value === undefined) throw withoutDirectory(error);
    return value.servers
      .filter(({ address }) => address !== "")
      .map(({ fsId, address }) => ({ name: fsId, address: parseAddress(address) }));
  }

  /** Asks every node at once, each for at most ADMINISTRATION_TIMEOUT_MS; never rejects. */
  onNodes<T>(nodes: readonly AdministeredNode[], call: OnNode<T>): Promise<Answer<T>[]> {
    return Promise.all(
      nodes.map(({ name, address }) =>
        this.#answer({ name, address }, () =>
          this.#passwordHash === undefined
            ? this.#asMyself(address, call)
            : this.#byPassword(address, this.#passwordHash, call),
        ),
      ),
    );
  }

  /** Asks the first MetaServer that can answer; never rejects. */
  onDirectory<T>(call: OnDirectory<T>): Promise<Answer<T>> {
    return this.#answer({ name: DIRECTORY, address: "" }, async () => {
      const profile = await this.#context.profile();
      const { metaservers } = profile;
      const [first] = metaservers;
      if (first === undefined) throw new ClientError("USAGE", "no metaserver is named");
      const { signal } = this.#context;
      let metadata: Record<string, string>;
      if (this.#passwordHash === undefined) {
        const token = await this.#context.identity.idToken("the metaserver must know who you are");
        for (const address of metaservers) requireSafeForToken(profile, address, token);
        metadata = callMetadata(token);
      } else {
        for (const address of metaservers) requireSafeForPassword(profile, address);
        metadata = passwordMetadata(this.#passwordHash);
      }
      this.#channel ??= openChannel(profile, first, metaservers);
      const client = createClient(MetaServer, this.#channel);
      const options = { metadata, signal, timeoutMs: ADMINISTRATION_TIMEOUT_MS };
      try {
        return await this.#channel.onAnyServer(
          () => call(client, options),
          (error) => error.metadata.get("svc-reason") === undefined,
        );
      } catch (error) {
        throw await refusalOf(error, metaservers.join(", "));
      }
    });
  }

  /** Closes the opened connections. */
  close(): void {
    this.#channel?.close();
  }

  async #answer<T>(place: AdministeredNode, ask: () => Promise<T>): Promise<Answer<T>> {
    try {
      return { ...place, value: await inTime(ask()) };
    } catch (error) {
      this.#context.signal.throwIfAborted();
      return { ...place, error, problem: explain(error).what };
    }
  }

  async #byPassword<T>(address: string, passwordHash: string, call: OnNode<T>): Promise<T> {
    requireSafeForPassword(await this.#context.profile(), address);
    const files = await this.#cluster.link(address).filesWithoutSession();
    try {
      return await call(files, this.#options(passwordMetadata(passwordHash)));
    } catch (error) {
      throw await refusalOf(error, address);
    }
  }

  /** Calls with a session of one's own on the node; an ended session is renewed once. */
  async #asMyself<T>(address: string, call: OnNode<T>): Promise<T> {
    const link = this.#cluster.link(address);
    for (let attempt = 0; ; attempt++) {
      const session = await link.open();
      try {
        return await call(session.files, this.#options(callMetadata(session.token)));
      } catch (error) {
        const failure = await refusalOf(error, address);
        const isOver = failure instanceof GroveError && /^SESSION_|^IP_/.test(failure.code);
        if (!isOver || attempt > 0) throw failure;
        await link.renew(session, "the session has ended");
      }
    }
  }

  #options(metadata: Record<string, string>): CallOptions {
    return { metadata, signal: this.#context.signal, timeoutMs: ADMINISTRATION_TIMEOUT_MS };
  }
}

/** Signing in and finding an address have limits of their own, which are longer. */
async function inTime<T>(asked: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const late = new ClientError("NETWORK", `it did not answer within ${ADMINISTRATION_TIMEOUT_MS / 1_000} s`);
  const timer = setTimeout(() => reject(late), ADMINISTRATION_TIMEOUT_MS);
  try {
    return await Promise.race([asked, promise]);
  } finally {
    clearTimeout(timer);
  }
}

function withoutDirectory(error: unknown): unknown {
  const { what } = explain(error);
  if (error instanceof GroveError && error.code === "NOT_ADMIN") return error;
  return new ClientError("NETWORK", `no metaserver tells which nodes there are: ${what.replace(/\.$/, "")}`, {
    todo: "Name the nodes with --nodes HOST:PORT,…",
    cause: error,
  });
}
