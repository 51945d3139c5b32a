// One of two consoles whose clusters differ only in users: a real one on a fake clock, with the rig's polls.
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { WebSocket } from "ws";
import type { Clock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { type BuiltConsole, buildConsole } from "#console/app/console.ts";
import { listedNode } from "#console/cluster/cluster-state.fixture.ts";
import type { NodeReading, SecurityEvent } from "#console/cluster/cluster-state.ts";
import { OperatorPassword } from "#console/operators/operator-password.ts";
import type { DirectoryReader } from "#metaserver/directory/directory.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";

const PASSWORD = "a password of the rig";
const VISITOR = "192.0.2.77";
const BOUNDLESS = { perSecond: 1e9, burst: 1e9 };

/** A request. */
export interface Question {
  readonly method: "GET" | "POST" | "HEAD" | "DELETE" | "PUT";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A console with a visitor and an operator. */
export class Twin {
  readonly #console: BuiltConsole;
  readonly #ends: AsyncDisposableStack;
  readonly #homes: Map<string, string>;
  readonly #frames: string[] = [];
  #socket: WebSocket | undefined;
  #token = "";

  private constructor(console: BuiltConsole, ends: AsyncDisposableStack, homes: Map<string, string>) {
    this.#console = console;
    this.#ends = ends;
    this.#homes = homes;
  }

  /** Builds one with these nodes. */
  static async open(folder: string, clock: Clock, nodeIds: readonly string[]): Promise<Twin> {
    await mkdir(folder, { recursive: true });
    const ends = new AsyncDisposableStack();
    const homes = new Map<string, string>();
    const password = await OperatorPassword.open({
      env: { ADMIN_PASSWORD_HASH: adminPasswordHash(PASSWORD) },
      file: undefined,
    });
    const console = await buildConsole(
      {
        listen: { host: "127.0.0.1", port: 0 },
        dataFolder: folder,
        directory: storeOf(homes),
        pausePlacement: () => Promise.resolve(),
        withNodeStore: () => Promise.reject(new Error("this store is not written")),
        password,
        loginFailureDelayMs: 0,
        rates: { visitor: BOUNDLESS, operator: BOUNDLESS },
        clock,
        random: systemRandom,
        log: silentLogger,
      },
      ends,
    );
    const twin = new Twin(console, ends, homes);
    console.parts.watch.clusterState.list(nodeIds.map((id) => listedNode(id, { name: `Node ${id}` })));
    await console.app.listen({ host: "127.0.0.1", port: 0 });
    await twin.#openSocket();
    return twin;
  }

  /** Delivers the result of a poll to the console. */
  polled(nodeId: string, reading: NodeReading | undefined, events: readonly SecurityEvent[]): void {
    const { clusterState } = this.#console.parts.watch;
    if (reading === undefined) {
      clusterState.failed(nodeId, "no answer");
      return;
    }
    for (const username of reading.perUserStorage.keys()) this.#homes.set(username, nodeId);
    clusterState.answered(nodeId, reading, events);
  }

  /** Tries a wrong operator's password. */
  guess(address: string): void {
    this.#console.parts.alerts.loginFailed(address);
  }

  /** Signs an operator in or out, or has one read and act: visitors must not notice either. */
  async operate(
    act: "sign in" | "sign out" | "acknowledge users' alerts" | "resolve users' alerts",
  ): Promise<void> {
    const { gate } = this.#console;
    if (act === "sign in" || this.#token === "")
      this.#token = gate.sessions.create(adminPasswordHash(PASSWORD)).token;
    if (act === "sign out") {
      await this.#ask({ method: "POST", url: "/api/auth/logout" }, this.#token);
      this.#token = "";
      return;
    }
    if (act === "sign in") return;
    const verb = act.startsWith("acknowledge") ? "ack" : "resolve";
    const ids = (await this.operatorAlerts())
      .filter((alert) => alert.username !== undefined)
      .map(({ id }) => id);
    if (ids.length === 0) return;
    const body = JSON.stringify({ ids: ids.slice(0, 20) });
    await this.#ask({ method: "POST", url: `/api/alerts/${verb}`, body }, this.#token);
  }

  /** The operators' view of alerts. */
  async operatorAlerts(): Promise<{ id: string; type: string; username?: string }[]> {
    if (this.#token === "")
      this.#token = this.#console.gate.sessions.create(adminPasswordHash(PASSWORD)).token;
    const answer = await this.#ask({ method: "GET", url: "/api/alerts" }, this.#token);
    return (JSON.parse(answer.payload) as { alerts: { id: string; type: string; username?: string }[] })
      .alerts;
  }

  /** The operators' view of the cluster. */
  async operatorCluster(): Promise<string> {
    await this.operatorAlerts();
    return (await this.#ask({ method: "GET", url: "/api/cluster" }, this.#token)).payload;
  }

  /** Returns a visitor's answer as one text: status, headers and body, without the time of day. */
  async visitorAnswer(question: Question): Promise<string> {
    const { statusCode, headers, payload } = await this.#ask(question);
    const { date: _date, ...kept } = headers;
    return `${statusCode} ${JSON.stringify(kept)}\n${payload}`;
  }

  /** Returns the bytes sent to the visitor's socket since the last call. */
  async visitorFrames(): Promise<string> {
    await this.socketAnswers();
    return this.#frames.splice(0).join("\n");
  }

  /** Resolves when all sent frames have reached the visitor's socket, and its pongs the console. */
  async socketAnswers(): Promise<void> {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN) throw new Error("the visitor's socket is closed");
    const pong = once(socket, "pong");
    socket.ping();
    await pong;
  }

  /** Resolves when every alert found so far is saved and sent. */
  settled(): Promise<void> {
    return this.#console.parts.alerts.saved();
  }

  async close(): Promise<void> {
    this.#socket?.terminate();
    await this.#ends.disposeAsync();
  }

  async #openSocket(): Promise<void> {
    const { port } = this.#console.app.server.address() as AddressInfo;
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws/cluster`);
    socket.on("message", (data) => this.#frames.push((data as Buffer).toString("utf8")));
    this.#socket = socket;
    await once(socket, "open");
  }

  async #ask(
    { method, url, headers, body }: Question,
    token?: string,
  ): Promise<{ statusCode: number; headers: Record<string, unknown>; payload: string }> {
    return this.#console.app.inject({
      method,
      url,
      remoteAddress: VISITOR,
      headers: {
        host: "console.example",
        "x-request-id": "01JD0000000000000000000000",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: body }),
    });
  }
}

/** A metadata store that has the users' homes and no nodes: the rig delivers the polls itself. */
function storeOf(homes: ReadonlyMap<string, string>): DirectoryReader {
  const never = new Promise<never>(() => undefined);
  const listRoots = async (after?: string): Promise<object[]> =>
    after === undefined ? [...homes].map(([owner, fsId]) => ({ owner, fsId })) : [];
  return {
    failed: never,
    watch: () => () => undefined,
    nodes: () => never,
    clusterId: async () => undefined,
    findRoot: async () => undefined,
    listRoots,
    drainedNodes: async () => [...new Set(homes.values())],
    rootMoves: async () => [],
    sshNodes: async () => [],
    securityReports: async () => [],
    close: async () => undefined,
  } as unknown as DirectoryReader;
}
