// A whole cluster with its door, and one person's app password, for tests of real programs.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { groveHere } from "#e2e/client-here.ts";
import { type DemoSite, openDemoSite } from "#e2e/demo-site.ts";
import type { Ended } from "#e2e/processes.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** The person of these tests. */
export const ALICE = "alice@example.com";

/** A door with the cluster behind it. */
export interface DoorSite {
  /** Data folder of the cluster. */
  readonly folder: string;
  /** Above /dav/, without a slash. */
  readonly door: string;
  readonly metaserver: string;
  /** The one FileServer, and with what its metrics are read. */
  readonly node: { readonly id: string; readonly grpc: string; readonly metrics: string };
  readonly metricsToken: string;
  readonly password: string;
  /** Authorization header of the person. */
  readonly authorization: string;
  /** The same door in another person's name. */
  as(email: string): Promise<DoorSite>;
  /** Process id of a part of the cluster. */
  pid(name: string): Promise<number>;
  /** A request below /dav/. */
  dav(path: string, init?: RequestInit): Promise<Response>;
  /** Sets the person's quota, or another's. */
  setQuota(bytes: number, user?: string): Promise<void>;
  signIn(): Promise<void>;
  /** Runs a command of the client in the person's name. */
  grove(...words: readonly string[]): Promise<Ended>;
  /** The same with a line of standard input. */
  groveWith(input: string, ...words: readonly string[]): Promise<Ended>;
}

/** Starts one; it ends with its owner. */
export async function openDoorSite(t: { after(hook: () => Promise<void>): void }): Promise<DoorSite> {
  return siteOf(await openDemoSite(t, { nodes: 1, reserve: "64MiB" }), ALICE);
}

async function siteOf(site: DemoSite, email: string): Promise<DoorSite> {
  const cluster = (await site.cluster()) as Awaited<ReturnType<typeof site.cluster>> & {
    readonly door: string;
    readonly metrics_token: string;
    readonly nodes: readonly DoorSite["node"][];
  };
  const password = await makeAppPassword(cluster.metaserver, email);
  const authorization = `Basic ${Buffer.from(`${email}:${password}`).toString("base64")}`;
  const { door, metaserver, metrics_token: metricsToken } = cluster;
  const [node] = cluster.nodes;
  assert.ok(node !== undefined);
  const env = { XDG_CONFIG_HOME: join(site.folder, "people", email) };
  return {
    folder: site.folder,
    door,
    metaserver,
    node,
    metricsToken,
    password,
    authorization,
    as: (other) => siteOf(site, other),
    async pid(name) {
      return (await site.cluster()).pids[name] ?? assert.fail(`${name} does not run`);
    },
    dav: (path, init = {}) =>
      fetch(`${door}/dav/${path}`, {
        ...init,
        headers: { ...(init.headers as Record<string, string> | undefined), authorization },
      }),
    async setQuota(bytes, user = email) {
      await site.ask(`/api/users/${encodeURIComponent(user)}/quota`, "PUT", { quota_bytes: bytes });
    },
    signIn: () => site.signIn(email),
    grove: (...words) => groveHere(words, { env }),
    groveWith: (input, ...words) => groveHere(words, { env, input }),
  };
}

/**
 * Makes empty files in the root of somebody who need not have signed in, by one command of the client: a
 * request for each to a door takes three times as long.
 */
export async function makeEmptyFiles(site: DoorSite, user: string, names: readonly string[]): Promise<void> {
  const folder = scratchFolder("empty-");
  const env = { GROVE_CONFIG_DIR: join(folder, "config") };
  const paths = names.map((name) => join(folder, name));
  for (const path of paths) writeFileSync(path, "");
  for (const words of [
    ["login", "--metaserver", site.metaserver, "--mock", user],
    ["put", "-q", ...paths, "/"],
  ]) {
    const { code, stderr } = await groveHere(words, { env });
    assert.equal(code, 0, stderr);
  }
}

async function makeAppPassword(metaserver: string, user: string): Promise<string> {
  const channel = new GrpcChannel({ addresses: [metaserver] });
  try {
    const client = createClient(MetaServer, channel);
    const metadata = { authorization: `Bearer mock-jwt.${user}` };
    return (await client.createAppPassword({ name: "tests" }, { metadata })).password;
  } finally {
    channel.close();
  }
}
