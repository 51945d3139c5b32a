// DIR/cluster.json: the addresses and secrets of the running demonstration for clients and tests.
import { rm } from "node:fs/promises";
import { writeFileAtomic } from "#os/atomic-file.ts";

/** The file's contents. It holds secrets, so its mode is 0600. */
export interface ClusterDocument {
  /** host:port. */
  readonly metaserver: string;
  /** Base URL of the console, above /api. */
  readonly console: string;
  /** Base URL of the door, above /dav/. */
  readonly door: string;
  readonly admin_password: string;
  /** Bearer token for the users' values in /metrics (T8). */
  readonly metrics_token: string;
  readonly nodes: readonly {
    readonly id: string;
    /** host:port. */
    readonly grpc: string;
    /** Base URL of the listener, above /metrics. */
    readonly metrics: string;
    /** Data folder. */
    readonly data: string;
  }[];
  /** Path of the authority's certificate, PEM; null without TLS. */
  readonly ca: string | null;
  readonly mock: boolean;
  readonly idp: {
    readonly issuer: string;
    readonly client_id: string;
    readonly auth_url: string;
    readonly token_url: string;
    readonly tokeninfo_url: string;
  } | null;
  readonly users: readonly { readonly email: string; readonly password: string }[];
  /** Process ids by "up", "idp", "metaserver", "console", "door" and node id; null without a process. */
  readonly pids: Readonly<Record<string, number | null>>;
}

/** Writes and removes one cluster file; writes run one after another, so that the newest stays. */
export class ClusterFile {
  readonly path: string;
  #last: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.path = path;
  }

  /** Replaces the file as a whole. */
  write(document: ClusterDocument): Promise<void> {
    const text = `${JSON.stringify(document, null, 2)}\n`;
    this.#last = this.#last.then(() => writeFileAtomic(this.path, text, { mode: 0o600 }));
    return this.#last;
  }

  /** Removes it: programs that wait for the file wait for a cluster that answers. */
  async remove(): Promise<void> {
    await this.#last.catch(() => undefined);
    await rm(this.path, { force: true });
  }
}
