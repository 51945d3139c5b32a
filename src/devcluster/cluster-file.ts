// DIR/cluster.json: everything that a client, a test or a person needs to use the running demonstration.
import { rm } from "node:fs/promises";
import { writeFileAtomic } from "#os/atomic-file.ts";

/** The file's contents. Secrets are in it, so that its mode is 0600. */
export interface ClusterDocument {
  /** host:port. */
  readonly metaserver: string;
  /** URL of the console, to put /api behind. */
  readonly console: string;
  readonly admin_password: string;
  /** Bearer token for what /metrics tells of users (T8). */
  readonly metrics_token: string;
  readonly nodes: readonly {
    readonly id: string;
    /** host:port. */
    readonly grpc: string;
    /** URL to put /metrics behind. */
    readonly metrics: string;
    /** Data folder. */
    readonly data: string;
  }[];
  /** Path of the authority's certificate, PEM; null when everything is plain. */
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
  /** Process ids by "up", "idp", "metaserver", "console" and node id; null for what does not run. */
  readonly pids: Readonly<Record<string, number | null>>;
}

/** Writes and removes one cluster file; writes go one after another, so that the newest stays. */
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

  /** Removes it: whoever waits for the file waits for a cluster that answers. */
  async remove(): Promise<void> {
    await this.#last.catch(() => undefined);
    await rm(this.path, { force: true });
  }
}
