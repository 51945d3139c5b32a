// A cluster with two doors, one of them over TLS, and the honest clients that work through both.
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { Agent, type IncomingMessage, request } from "node:http";
import { connect } from "node:http2";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import type { Campaign } from "#prove/campaign.ts";
import { type GroveProcess, startGroveProcess } from "#prove/grove-process.ts";
import { startSmallCluster } from "#prove/small-cluster.ts";
import { createAuthority } from "#security/authority/authority.ts";
import { freePort } from "#testing/free-ports.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { BIG_FILE, prepareAttacker } from "./attackers-session.ts";
import type { DoorPlace } from "./door-place.ts";
import type { HonestTask } from "./honest-side.ts";
import type { StrokeTime } from "./orders.ts";

const HONEST = "steady@example.com";
const ATTACKER = "attacker@example.com";
const FROM = "127.0.0.66";
const ASKS_EVERY_MS = 4;
const CALL_LIMIT_MS = 30_000;
const SMALL_BYTES = 4_096;

/** The scene of the attacks. */
export interface DoorScene {
  readonly place: Omit<DoorPlace, keyof StrokeTime>;
  readonly processes: readonly GroveProcess[];
  readonly tasks: readonly HonestTask[];
  /** Has a new client ask at both doors; resolves with what went wrong. */
  letsIn(): Promise<string | undefined>;
}

/** Starts it; it ends with the campaign. */
export async function startDoorScene(campaign: Campaign): Promise<DoorScene> {
  const folder = await campaign.folder("memory");
  const cluster = await startSmallCluster(folder);
  campaign.atEnd(() => cluster.stop());
  const metaserver = cluster.metaserver.address;
  const certificate = await selfIssued(join(folder, "public"));
  const [port, tlsPort] = [await freePort(), await freePort()];
  const start = (at: number, words: readonly string[]): Promise<GroveProcess> =>
    startGroveProcess(
      ["door", "-mock", "-listen", `127.0.0.1:${at}`, "-metaserver", metaserver, "-metrics", "off"].concat(
        words,
      ),
    );
  const doors = await Promise.all([start(port, []), start(tlsPort, certificate)]);
  campaign.atEnd(async () => void (await Promise.all(doors.map((door) => door.end("SIGKILL")))));
  await prepareAttacker(Number(cluster.fileserver.address.split(":")[1]), FROM);
  const [authorization, honest] = await authorizationsOf(metaserver);
  const plain = (method: string, path: string, agent?: Agent): Promise<void> =>
    ask(port, { method, path, authorization: honest, ...(agent && { agent }) });
  await plain("PUT", "/dav/small");
  const agent = new Agent({ keepAlive: true, maxSockets: 2 });
  campaign.atEnd(() => agent.destroy());
  const session = new Http2Asker(tlsPort, honest);
  campaign.atEnd(() => session.close());
  const task = (name: string, once: () => Promise<void>): HonestTask => ({
    name,
    everyMs: ASKS_EVERY_MS,
    isPaced: true,
    once,
  });
  return {
    place: { port, tlsPort, from: FROM, authorization, bigFile: BIG_FILE },
    processes: [...doors, ...cluster.all.map(({ process }) => process)],
    tasks: [
      task("GET", () => plain("GET", "/dav/small", agent)),
      task("PROPFIND", () => plain("PROPFIND", "/dav/", agent)),
      task("GET by HTTP/2", () => session.get("/dav/small")),
    ],
    async letsIn() {
      try {
        await plain("GET", "/dav/small");
        const fresh = new Http2Asker(tlsPort, honest);
        await fresh.get("/dav/small").finally(() => fresh.close());
        return undefined;
      } catch (error) {
        return String(error);
      }
    },
  };
}

/** Flags of a certificate for this machine. */
async function selfIssued(folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const authority = await createAuthority(join(folder, "ca"), { clock: systemClock });
  const issued = await authority.issueNodeCertificate({ id: "door", addresses: ["127.0.0.1"] });
  const [cert, key] = [join(folder, "door.pem"), join(folder, "door.key")];
  await writeFile(cert, issued.certificatePem);
  await writeFile(key, issued.keyPem, { mode: 0o600 });
  return ["-public_cert", cert, "-public_key", key];
}

/** Basic credentials of attacker and honest client. */
async function authorizationsOf(metaserver: string): Promise<[string, string]> {
  const channel = new GrpcChannel({ addresses: [metaserver] });
  try {
    const client = createClient(MetaServer, channel);
    const of = async (user: string): Promise<string> => {
      const metadata = { authorization: `Bearer mock-jwt.${user}` };
      const { password } = await client.createAppPassword({ name: "rig" }, { metadata });
      return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
    };
    return [await of(ATTACKER), await of(HONEST)];
  } finally {
    channel.close();
  }
}

/** One request of the honest client; rejects when it is refused. */
async function ask(
  port: number,
  options: {
    readonly method: string;
    readonly path: string;
    readonly authorization: string;
    readonly agent?: Agent;
  },
): Promise<void> {
  const { method, path, authorization, agent } = options;
  const body = method === "PUT" ? Buffer.alloc(SMALL_BYTES, 7) : undefined;
  const sent = request({
    port,
    host: "127.0.0.1",
    method,
    path,
    agent: agent ?? false,
    timeout: CALL_LIMIT_MS,
    headers: { authorization, depth: "1", "content-length": body?.length ?? 0 },
  });
  sent.on("timeout", () => sent.destroy(new Error(`${method} was not answered`)));
  sent.end(body);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "end");
  const status = answer.statusCode ?? 0;
  if (status < 200 || status > 299) throw new Error(`${method} ${path} was answered ${status}`);
}

/** An honest client of HTTP/2 on a connection that it keeps. */
class Http2Asker {
  readonly #session: ReturnType<typeof connect>;
  readonly #authorization: string;

  constructor(port: number, authorization: string) {
    this.#authorization = authorization;
    // The rig judges the door's service, not its certificate.
    this.#session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    this.#session.on("error", () => undefined);
  }

  async get(path: string): Promise<void> {
    const stream = this.#session.request({ ":path": path, authorization: this.#authorization });
    stream.setTimeout(CALL_LIMIT_MS, () => stream.destroy(new Error("GET by HTTP/2 was not answered")));
    const [headers] = (await once(stream, "response")) as [{ readonly ":status"?: number }];
    stream.resume();
    await once(stream, "end");
    if (headers[":status"] !== 200) throw new Error(`GET by HTTP/2 was answered ${headers[":status"]}`);
  }

  close(): void {
    this.#session.destroy();
  }
}
