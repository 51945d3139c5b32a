// Many nodes with only a metrics listener: one server behind many addresses of 127.1.0.0/16.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { documentText } from "#base/fake-nodes.fixture.ts";
import { serveTasks } from "#bench/tasks.ts";
import type { NodeMetrics } from "#telemetry/metrics-document.ts";
import { metricsDifference, metricsJson } from "#telemetry/metrics-json.ts";
import { UserMaps, type UserReadings } from "#telemetry/user-maps.ts";

/** A node's users, with the nodes' own versions and differences. */
interface Node {
  readonly names: readonly string[];
  readonly users: UserMaps;
  polls: number;
}

const METRICS = JSON.parse(documentText({})) as NodeMetrics;
const GUARDED = { damaged: [], securityEventsTotal: 0 };
/** One user in this many has written since the poll before. */
const WRITING_SHARE = 20;

function makeNode(index: number, count: number): Node {
  const names = Array.from({ length: count }, (_, user) => `user-${index}-${user}@people.example`);
  const places = new Map(names.map((name, user) => [name, user]));
  const node: Node = {
    names,
    users: new UserMaps((name) => readingsOf(node, name, places.get(name) ?? 0)),
    polls: 0,
  };
  node.users.update(names);
  return node;
}

function readingsOf({ polls }: Node, username: string, user: number): UserReadings {
  return {
    username,
    liveBytes: user * 1_000_003 + polls * 4_096,
    trashBytes: 0,
    stagingBytes: 0,
    fileCount: user,
    inodeCount: user,
    inodeLimit: 10_000_000,
    inodeLimitExplicit: false,
    quotaBytes: 17_179_869_184n,
    quotaExplicit: false,
    lastActiveWallMs: (1_790_000_000 + polls * 5) * 1_000,
  };
}

/** The answer to a request, after some users have written. */
function poll(node: Node, since: string | null): { readonly body: Buffer; readonly version: string } {
  node.polls++;
  const { names, users, polls } = node;
  users.update(names.filter((_, user) => user % WRITING_SHARE === polls % WRITING_SHARE));
  const metrics: NodeMetrics = { ...METRICS, bytes_written_total: 10_000_000 + polls * 1_000_000 };
  const answer = users.answerOf(since);
  const pieces =
    answer === undefined || since === null
      ? metricsJson(metrics, users, GUARDED)
      : metricsDifference(metrics, users, GUARDED, { version: since, answer });
  return { body: Buffer.concat(pieces), version: users.takeVersion() };
}

const nodes = new Map<string, Node>();
let usersPerNode = 0;

/** The address names the node: 127.1.0.5 is the fifth. */
const server = createServer((request, response) => {
  const address = request.socket.localAddress ?? "";
  const url = new URL(request.url ?? "", "http://node");
  if (url.pathname !== "/metrics") return send(response, Buffer.from('{"events":[]}'));
  let node = nodes.get(address);
  if (node === undefined) {
    const [high = 0, low = 0] = address.split(".").slice(2).map(Number);
    node = makeNode(high * 256 + low, usersPerNode);
    nodes.set(address, node);
  }
  const { body, version } = poll(node, url.searchParams.get("since"));
  send(response.setHeader("etag", `"${version}"`), body);
});

function send(response: ServerResponse, body: Buffer): void {
  response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
  response.end(body);
}

// Keeps a connection as long as the nodes' own listener does.
server.keepAliveTimeout = 15_000;

serveTasks(
  {
    // Input: the port to listen on and the users of each node.
    serve: async (input) => {
      const { port, users } = input as { port: number; users: number };
      usersPerNode = users;
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen({ port, host: "0.0.0.0", backlog: 4_096 }, resolve);
      });
      return (server.address() as AddressInfo).port;
    },
  },
  () => {
    server.closeAllConnections();
    server.close();
  },
);
