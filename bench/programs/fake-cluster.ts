// Many nodes with only a metrics listener: one server behind many addresses of 127.1.0.0/16.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { documentText, type FakeUser } from "#base/fake-nodes.fixture.ts";
import { serveTasks } from "#bench/tasks.ts";

/** A document, split at the users' entries, so that a poll's changes cost little. */
interface Node {
  readonly head: string;
  readonly names: readonly string[];
  readonly storage: string[];
  readonly quota: string;
  readonly detail: string[];
  polls: number;
}

/** One user in this many has written since the poll before, and four times as many were seen. */
const WRITING_SHARE = 20;

function makeNode(index: number, users: number): Node {
  const names = Array.from({ length: users }, (_, user) => `user-${index}-${user}@people.example`);
  const node: Node = {
    head: documentText({}).slice(0, -1),
    names,
    storage: names.map(() => ""),
    quota: names.map((name) => `"${name}":17179869184`).join(","),
    detail: names.map(() => ""),
    polls: 0,
  };
  for (let user = 0; user < users; user++) change(node, user);
  return node;
}

function change(node: Node, user: number): void {
  const name = node.names[user] ?? "";
  const bytes = user * 1_000_003 + node.polls * 4_096;
  const seen: FakeUser["lastActiveUnix"] = 1_790_000_000 + node.polls * 5;
  node.storage[user] = `"${name}":${bytes}`;
  node.detail[user] =
    `"${name}":{"live_bytes":${bytes},"trash_bytes":0,"staging_bytes":0,"file_count":${user},` +
    `"inode_count":${user},"inode_limit":10000000,"inode_limit_explicit":false,` +
    `"last_active_unix":${seen},"quota_explicit":false}`;
}

function poll(node: Node): string {
  node.polls++;
  const { length } = node.names;
  for (let user = node.polls % WRITING_SHARE; user < length; user += WRITING_SHARE) change(node, user);
  const written = 10_000_000 + node.polls * 1_000_000;
  const head = node.head.replace('"bytes_written_total":10000000', `"bytes_written_total":${written}`);
  return (
    `${head},"security_events_total":0,"damaged_files":[],"per_user_storage":{${node.storage.join(",")}},` +
    `"per_user_quota":{${node.quota}},"per_user_detail":{${node.detail.join(",")}}}`
  );
}

const nodes = new Map<string, Node>();
let usersPerNode = 0;

/** The address names the node: 127.1.0.5 is the fifth. */
const server = createServer((request, response) => {
  const address = request.socket.localAddress ?? "";
  let body = '{"events":[]}';
  if (request.url === "/metrics") {
    let node = nodes.get(address);
    if (node === undefined) {
      const [high = 0, low = 0] = address.split(".").slice(2).map(Number);
      node = makeNode(high * 256 + low, usersPerNode);
      nodes.set(address, node);
    }
    body = poll(node);
  }
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
});
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
