// A cluster as operators run it, for attacks of unproven callers.
//
// A MetaServer and two nodes with TLS and certificates, a provider that judges tokens, and a FileServer
// without TLS beside them.
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "#base/clock.ts";
import { METRICS_PORT_OFFSET } from "#base/metrics-port.ts";
import type { Campaign } from "#prove/campaign.ts";
import type { Door } from "#prove/front-caller.ts";
import { type GroveProcess, startGroveProcess } from "#prove/grove-process.ts";
import { createAuthority } from "#security/authority/authority.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import type { ChannelTls } from "#wire/grpc/transport.ts";

const CLIENT_ID = "the-rigs";
/** Longer than any client keeps a connection to it. */
const KEPT_ALIVE_MS = 600_000;
const BACKLOG = 1_024;
const LIVES_S = 3_600;
/** Time that the provider takes for a token. */
const JUDGED_AFTER_MS = 30;
/** Part of the log line for each new state of the link to the MetaServer. */
const HEARTBEAT_FAILED = '"metaserver_failed"';
const REGISTERED_WITHIN_MS = 60_000;

/** One of its servers. */
export interface SceneServer {
  readonly name: "FileServer" | "node n1" | "node n2" | "MetaServer";
  readonly door: Door;
  /** The current process. */
  process: GroveProcess;
  start(): Promise<GroveProcess>;
  /** Characters printed so far, over all starts. */
  printed(): number;
  /** Failed heartbeats to the MetaServer in its log. */
  failedHeartbeats(): number;
}

/** The cluster and the FileServer. */
export interface UnprovenScene {
  readonly files: SceneServer;
  readonly node: SceneServer;
  readonly meta: SceneServer;
  readonly servers: readonly SceneServer[];
  /** A certificate of the cluster for a third node, to call the MetaServer as a node. */
  readonly nodeTls: ChannelTls;
  /** Trusts the cluster's authority, presents no certificate. */
  readonly clientTls: ChannelTls;
  /** A token that the provider knows. Each name stands for one user. */
  tokenOf(name: string): string;
  /** Questions to the provider about tokens with this prefix. */
  askedAbout(prefix: string): number;
  /** Failed heartbeats over all nodes. */
  failedHeartbeats(): number;
  /** Nodes that the MetaServer counts as alive; undefined without an answer. */
  liveNodes(): Promise<number | undefined>;
}

/** Starts it; it ends with the campaign. */
export async function startUnprovenScene(campaign: Campaign): Promise<UnprovenScene> {
  const folder = await campaign.folder("memory");
  const provider = await startTokenProvider(campaign);
  const authority = await createAuthority(join(folder, "ca"), { clock: systemClock });
  const certificateOf = async (id: string): Promise<{ files: string[]; tls: ChannelTls }> => {
    await mkdir(join(folder, id), { recursive: true });
    const issued = await authority.issueNodeCertificate({ id, addresses: ["127.0.0.1"] });
    const [cert, key] = [join(folder, id, "tls.pem"), join(folder, id, "tls.key")];
    await writeFile(cert, issued.certificatePem);
    await writeFile(key, issued.keyPem, { mode: 0o600 });
    const files = ["-tls_cert", cert, "-tls_key", key, "-tls_ca", authority.certificatePath];
    const { certificatePem, keyPem } = issued;
    return { files, tls: { ca: authority.certificatePem, cert: certificatePem, key: keyPem } };
  };
  const [metaPort = 0, n1Port = 0, n2Port = 0, filesPort = 0] = await freeGrpcPorts(4);
  const signIn = {
    SVC_AUTH_MOCK: "0",
    IDP_CLIENT_ID: CLIENT_ID,
    IDP_TOKENINFO_URL: `${provider.origin}/tokeninfo`,
  };
  const server = async (
    name: SceneServer["name"],
    door: Door,
    words: readonly string[],
    env: Readonly<Record<string, string>>,
  ): Promise<SceneServer> => {
    const place = ["-listen", `127.0.0.1:${door.port}`, "-data", join(folder, name), "-reflection"];
    let [printed, failures, line] = [0, 0, ""];
    const onOutput = (piece: string): void => {
      printed += piece.length;
      const lines = (line + piece).split("\n");
      line = lines.pop() ?? "";
      failures += lines.filter((each) => each.includes(HEARTBEAT_FAILED)).length;
    };
    const start = (): Promise<GroveProcess> => startGroveProcess([...words, ...place], { env, onOutput });
    const counts = { printed: () => printed, failedHeartbeats: () => failures };
    const made = { name, door, start, ...counts, process: await start() };
    campaign.atEnd(() => made.process.end("SIGKILL"));
    return made;
  };
  const nodeOf = async (id: "n1" | "n2", port: number): Promise<SceneServer> => {
    // New roots go where more room is: to the node that is attacked.
    const reserve = id === "n1" ? "1MiB" : "1GiB";
    const words = ["fileserver", "-id", id, "-metaserver", `127.0.0.1:${metaPort}`, "-reserve", reserve];
    const { files } = await certificateOf(id);
    return server(`node ${id}`, { port, isTls: true }, [...words, ...files], signIn);
  };
  const { files: metaFiles } = await certificateOf("metaserver");
  const meta = await server(
    "MetaServer",
    { port: metaPort, isTls: true },
    ["metaserver", ...metaFiles],
    signIn,
  );
  const [node, other, files] = await Promise.all([
    nodeOf("n1", n1Port),
    nodeOf("n2", n2Port),
    server(
      "FileServer",
      { port: filesPort, isTls: false },
      ["fileserver", "-id", "alone", "-reserve", "1MiB"],
      {},
    ),
  ]);
  const scene: UnprovenScene = {
    files,
    node,
    meta,
    servers: [files, node, other, meta],
    nodeTls: (await certificateOf("n3")).tls,
    clientTls: { ca: authority.certificatePem },
    tokenOf: (name) => `known-${name}`,
    askedAbout: (prefix) => provider.requests.filter((token) => token.startsWith(prefix)).length,
    failedHeartbeats: () => node.failedHeartbeats() + other.failedHeartbeats(),
    async liveNodes() {
      const url = `http://127.0.0.1:${metaPort - METRICS_PORT_OFFSET}/metrics`;
      const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
      const figures = (await answer?.json()) as { readonly nodes_live?: number } | undefined;
      return figures?.nodes_live;
    },
  };
  await nodesLive(scene);
  return scene;
}

/**
 * Waits until both nodes are alive for the MetaServer.
 * @throws Error when that does not happen
 */
export async function nodesLive(scene: UnprovenScene): Promise<void> {
  const lateMs = performance.now() + REGISTERED_WITHIN_MS;
  while ((await scene.liveNodes()) !== 2) {
    if (performance.now() > lateMs)
      throw new Error(`the nodes did not register: ${scene.node.process.log()}`);
    await sleep(50);
  }
}

/** Restarts servers that have ended, and those named; returns those that had ended. */
export async function revive(
  scene: UnprovenScene,
  isSpoilt: (process: GroveProcess) => boolean,
): Promise<{ readonly ended: readonly string[]; readonly isChanged: boolean }> {
  const ended = scene.servers.filter(({ process }) => !process.isRunning());
  const spoilt = scene.servers.filter(({ process }) => process.isRunning() && isSpoilt(process));
  const why = ended.map(({ name, process }) => `the ${name} has ended: ${process.log().slice(-300)}`);
  for (const { process } of spoilt) await process.end("SIGKILL");
  for (const server of [...ended, ...spoilt]) server.process = await server.start();
  return { ended: why, isChanged: ended.length + spoilt.length > 0 };
}

/** Starts a tokeninfo address over real HTTP that knows the tokens beginning with "known-". */
async function startTokenProvider(
  campaign: Campaign,
): Promise<{ readonly origin: string; readonly requests: readonly string[] }> {
  const requests: string[] = [];
  const server = createServer({ keepAliveTimeout: KEPT_ALIVE_MS }, (request, response) => {
    const token = tokenIn(request.url ?? "");
    requests.push(token);
    const name = /^known-(.*)$/.exec(token)?.[1];
    const nowS = Math.floor(Date.now() / 1_000);
    const claims = {
      iss: "https://provider.example",
      aud: CLIENT_ID,
      sub: name,
      email: `${name}@example.com`,
      email_verified: "true",
      iat: String(nowS - 10),
      exp: String(nowS + LIVES_S),
    };
    const answer = (): void =>
      void response
        .writeHead(name === undefined ? 400 : 200, { "content-type": "application/json" })
        .end(JSON.stringify(name === undefined ? { error: "invalid_token" } : claims));
    setTimeout(answer, JUDGED_AFTER_MS);
  });
  server.listen(0, "127.0.0.1", BACKLOG);
  await once(server, "listening");
  campaign.atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

const tokenIn = (url: string): string => new URLSearchParams(url.split("?", 2)[1]).get("id_token") ?? "";
