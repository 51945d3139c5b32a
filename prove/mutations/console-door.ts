// Sends mutated requests to the console: JSON, paths, queries, tokens, and HTTP itself.
import { Agent, request as httpRequest } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { ANSWER_WITHIN_MS } from "./grpc-door.ts";
import { mutatedCharacters, mutatedJson, nastyHeader, nastyText } from "./nasty-values.ts";

/** Answers about an unreachable node or a console without polls: no faults of the console. */
const NO_FAULTS: readonly string[] = [
  "NODE_OFFLINE",
  "NODE_ERROR",
  "NODE_TIMEOUT",
  "NODE_UNREACHABLE",
  "STARTING",
];
/**
 * Source of sign-ins: after a hundred wrong passwords the console locks an address for an hour, which must
 * not be the usual one.
 */
const SIGN_IN_FROM = "127.0.0.2";
/** Requests that would end the rig's own session. */
const SPARED = /^\/api\/auth\/logout/;

const SIGN_IN_TRIES = 60;
const SIGN_IN_AGAIN_MS = 500;

/** Kinds of mutations. */
export type HttpMutation = "json" | "path" | "query" | "credential" | "http";

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly query: readonly string[];
  readonly hasBody: boolean;
}

/** Settings of a console door. */
export interface ConsoleDoorDeps {
  readonly address: string;
  readonly password: string;
  readonly onViolation: (text: string) => void;
  readonly onSent: (mutation: HttpMutation, status: number) => void;
}

/** Valid bodies by route. */
const BODIES: readonly (readonly [RegExp, string])[] = [
  [/login$/, '{"password":"a password of the rigs"}'],
  [/quota$/, '{"quota_bytes":1000000}'],
  [/(?:resolve|ack)$/, '{"ids":["01JD0000000000000000000000"],"key":"node_offline:n1"}'],
  [/resolve-all$/, '{"severity":"warning","node_id":"n1"}'],
  [
    /silences$/,
    '{"matchers":[{"name":"node_id","value":"n1","is_regex":false}],"ends_at":1900000000,"comment":"c"}',
  ],
  [/execute$/, '{"node_id":"n1","action":"restart","service":"fileserver","command":"true"}'],
  [/run$/, '{"preset":"p","node_ids":["n1"],"kind":"restart"}'],
];

/** Attacks the console. */
export class ConsoleDoor {
  readonly #deps: ConsoleDoorDeps;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  #described: Promise<readonly Operation[]> | undefined;
  #token = "";
  #signingIn: Promise<void> | undefined;

  constructor(deps: ConsoleDoorDeps) {
    this.#deps = deps;
  }

  /** Sends one mutated request and judges the answer. */
  async attack(random: SeededRandom): Promise<void> {
    this.#described ??= this.#describe();
    const operations = await this.#described;
    if (this.#token === "") await this.#signIn();
    const operation = random.pick(operations);
    const draw = random.below(100);
    if (draw < 12) return this.#attackHttp(operation, random);
    const mutation: HttpMutation =
      draw < 50 && operation.hasBody ? "json" : draw < 65 ? "path" : draw < 85 ? "query" : "credential";
    const path =
      mutation === "path"
        ? wrongPath(operation, random)
        : mutation === "query"
          ? wrongQuery(operation, random)
          : plain(operation);
    const headers: Record<string, string> = { authorization: `Bearer ${this.#token}` };
    if (mutation === "credential") {
      delete headers["authorization"];
      headers[
        random.pick(["authorization", "cookie", "origin", "x-forwarded-for", "if-none-match", "accept"])
      ] = random.pick(["Bearer ", "svc_admin_token=", ""]) + nastyHeader(random);
    }
    const body = operation.hasBody ? bodyOf(operation, mutation === "json" ? random : undefined) : undefined;
    const { status, text } = await this.#ask(operation.method, path, headers, body);
    this.#judge(status, text, `${operation.method} ${path} ${body ?? ""}`);
    this.#deps.onSent(mutation, status);
    if (status === 401 && mutation !== "credential") this.#token = "";
  }

  close(): void {
    this.#agent.destroy();
  }

  #judge(status: number, text: string, what: string): void {
    if (status > 0 && status < 500) return;
    const code = /"code":"([A-Z_]+)"/.exec(text)?.[1] ?? "";
    if (status >= 500 && NO_FAULTS.includes(code)) return;
    this.#deps.onViolation(`${what.slice(0, 1_000)} was answered ${status} ${text.slice(0, 300)}`);
  }

  async #describe(): Promise<Operation[]> {
    const { paths } = JSON.parse((await this.#ask("GET", "/api/openapi.json", {}, undefined)).text) as {
      paths: Record<
        string,
        Record<string, { parameters?: { name: string; in: string }[]; requestBody?: unknown }>
      >;
    };
    return Object.entries(paths).flatMap(([path, methods]) =>
      SPARED.test(path)
        ? []
        : Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
            method: method.toUpperCase(),
            path,
            query: parameters.filter((one) => one.in === "query").map(({ name }) => name),
            hasBody: requestBody !== undefined,
          })),
    );
  }

  #signIn(): Promise<void> {
    this.#signingIn ??= this.#takeToken().finally(() => {
      this.#signingIn = undefined;
    });
    return this.#signingIn;
  }

  async #takeToken(): Promise<void> {
    const body = JSON.stringify({ password: this.#deps.password });
    for (let tries = 1; ; tries++) {
      const { status, cookie } = await this.#ask("POST", "/api/auth/login", {}, body, SIGN_IN_FROM);
      if (status === 200) {
        this.#token = /svc_admin_token=([0-9a-f]{64})/.exec(cookie)?.[1] ?? "";
        return;
      }
      // Mutated sign-ins may have used up the turns for comparing passwords.
      if (![0, 429, 503].includes(status) || tries === SIGN_IN_TRIES)
        throw new Error(`the rig cannot sign in: ${status}`);
      await sleep(SIGN_IN_AGAIN_MS);
    }
  }

  /** Status 0 when no answer came in time, or the connection broke. */
  #ask(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: string | undefined,
    from?: string,
  ): Promise<{ status: number; text: string; cookie: string }> {
    const { promise, resolve } = Promise.withResolvers<{ status: number; text: string; cookie: string }>();
    const [host, port] = this.#deps.address.split(":");
    const type =
      body === undefined
        ? {}
        : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) };
    const fail = (error: unknown): void => resolve({ status: 0, text: String(error), cookie: "" });
    const request = httpRequest(
      {
        host,
        port,
        method,
        path,
        agent: this.#agent,
        ...(from === undefined ? {} : { localAddress: from }),
        headers: { ...type, ...headers },
        timeout: ANSWER_WITHIN_MS,
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (piece: string) => {
          if (text.length < 1_000_000) text += piece;
        });
        response.on("error", fail);
        const cookie = String(response.headers["set-cookie"] ?? "");
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text, cookie }));
      },
    );
    request.on("timeout", () => request.destroy(new Error("no answer in time")));
    request.on("error", fail);
    request.end(body);
    return promise;
  }

  /** Sends malformed HTTP: the connection must be answered or closed soon, and never with a 500. */
  async #attackHttp(operation: Operation, random: SeededRandom): Promise<void> {
    const text = wrongHttp(operation, this.#token, random);
    const [host = "", port = ""] = this.#deps.address.split(":");
    const { promise, resolve } = Promise.withResolvers<string>();
    const socket = connect({ host, port: Number(port) });
    let answer = "";
    socket.setTimeout(ANSWER_WITHIN_MS, () => {
      answer = "HTTP/1.1 599 it hangs";
      socket.destroy();
    });
    socket.setEncoding("latin1").on("data", (piece: string) => {
      if (answer.length < 100_000) answer += piece;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(answer));
    socket.end(Buffer.from(text, "latin1"));
    const said = await promise;
    for (const [, status = ""] of said.matchAll(/HTTP\/1\.1 (\d{3}) /g))
      this.#judge(Number(status), said, `the bytes ${JSON.stringify(text)}`);
    this.#deps.onSent("http", Number(/HTTP\/1\.1 (\d{3}) /.exec(said)?.[1] ?? 0));
  }
}

const plain = ({ path }: Operation): string => path.replaceAll(/\{[^}]+\}/g, "n1");

const PERCENT = Array.from({ length: 256 }, (_, byte) => `%${byte.toString(16).padStart(2, "0")}`);

function encoded(random: SeededRandom): string {
  const bytes = nastyText(random).subarray(0, 2_000);
  if (random.chance(0.1)) return random.pick(["%", "%zz", "%00", "%ff", "%2e%2e%2f", "%c0%af"]);
  let text = "";
  for (const byte of bytes) text += PERCENT[byte];
  return text;
}

function wrongPath(operation: Operation, random: SeededRandom): string {
  if (operation.path.includes("{")) return operation.path.replaceAll(/\{[^}]+\}/g, () => encoded(random));
  return `${plain(operation)}/${encoded(random)}`;
}

function wrongQuery(operation: Operation, random: SeededRandom): string {
  const names = [...operation.query, "token", "__proto__", "constructor", "x"];
  const pairs = Array.from(
    { length: random.between(1, 4) },
    () => `${random.pick(names)}${random.pick(["=", "[]=", ""])}${encoded(random)}`,
  );
  return `${plain(operation)}?${pairs.join("&")}`;
}

function bodyOf(operation: Operation, random: SeededRandom | undefined): string {
  const text = BODIES.find(([pattern]) => pattern.test(operation.path))?.[1] ?? "{}";
  return random === undefined ? text : mutatedJson(text, random);
}

function wrongHttp(operation: Operation, token: string, random: SeededRandom): string {
  const body = operation.hasBody ? bodyOf(operation, undefined) : "";
  const lines = [
    `${operation.method} ${plain(operation)} HTTP/1.1`,
    "Host: console",
    `Authorization: Bearer ${token}`,
    `Content-Type: application/json`,
    `Content-Length: ${body.length}`,
  ];
  const extra = random.pick([
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: xchunked",
    "Content-Length: 5",
    "Content-Length: -1",
    "Host: other",
    " folded: line",
    "no colon",
    "__proto__: x",
    `X-Pad: ${"a".repeat(random.below(40_000))}`,
    "Expect: 100-continue",
    "Upgrade: websocket\r\nConnection: Upgrade",
    "Connection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ",
    "Range: bytes=0-",
    "Content-Encoding: gzip",
  ]);
  const at = random.between(1, lines.length);
  const text = `${lines.toSpliced(at, 0, extra).join("\r\n")}\r\n\r\n${body}`;
  return random.chance(0.5) ? text : mutatedCharacters(text, random);
}
