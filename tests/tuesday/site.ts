// The cluster of the walk, set up by the guide: authority, MetaServer, joined nodes, console, provider.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { metricsPortOf } from "#base/metrics-port.ts";
import { groveHere } from "#e2e/client-here.ts";
import { operatorHere } from "#e2e/operator-here.ts";
import { type Ended, freePlace, type Place, type Program, startGrove, stopProgram } from "#e2e/processes.ts";
import { createAuthorityFetch, type Fetch } from "#os/authority-fetch.ts";
import {
  answerAsIssuer,
  makeKey,
  type SigningKey,
  signToken,
  startProvider,
} from "#security/identity/provider.fixture.ts";
import type { AlertRecord } from "#wire/webapi/alert.ts";

/** The operator's password, whose hash the console and all nodes have. */
export const PASSWORD = "an operator's ordinary password";
const PASSWORD_HASH = createHash("sha256").update(PASSWORD).digest("hex");
const CLIENT_ID = "grove-tuesday";
/** Longer than any test: a busy machine is no failure. */
const WAIT_MS = 90_000;
const LOOK_MS = 250;

/** A program that can be ended and restarted with its words. */
export class Server {
  readonly place: Place;
  readonly data: string;
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  #program: Program | undefined;

  constructor(settings: {
    readonly place: Place;
    readonly data: string;
    readonly words: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  }) {
    this.place = settings.place;
    this.data = settings.data;
    this.words = settings.words;
    this.env = settings.env;
  }

  get program(): Program {
    return this.#program ?? assert.fail(`${this.words[0]} was not started`);
  }

  /** Starts it and waits until it serves, or for another output; with variables for this time. */
  async start(said = /"event":"serving"/, env: Server["env"] = {}): Promise<Program> {
    const program = startGrove(this.words, { env: { ...this.env, ...env } });
    this.#program = program;
    await program.says(said, WAIT_MS);
    return program;
  }

  /** Ends it; returns its exit code. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    return this.#program === undefined ? null : (await stopProgram(this.#program, signal)).code;
  }
}

/** A user at a command line of their own. */
export interface Somebody {
  readonly email: string;
  /** Runs a command to its end. */
  run(...words: readonly string[]): Promise<Ended>;
  /** Runs a command that must succeed; returns its standard output. */
  ok(...words: readonly string[]): Promise<string>;
  /** Runs a command that must be refused with this exit code; returns its message. */
  refused(code: number, ...words: readonly string[]): Promise<string>;
  /** The same without patience for a server that is down. */
  refusedAtOnce(code: number, ...words: readonly string[]): Promise<string>;
  /** Runs a command that asks for the administrator's password and must succeed. */
  asAdministrator(...words: readonly string[]): Promise<Ended>;
  /** Starts a command. */
  start(...words: readonly string[]): Program;
  /**
   * Signs in with an ID token of the provider, with this patience for a server that is down; returns the end.
   */
  signIn(patienceSeconds?: number): Promise<Ended>;
}

/** The first screen's text, from the words of the pages. */
export interface FirstScreen {
  readonly nodes: readonly Readonly<Record<string, unknown>>[];
  readonly open: readonly AlertRecord[];
}

/** A running cluster. */
export class Site {
  readonly folder: string;
  /** HOME of every process and person of the walk. */
  readonly home: string;
  readonly nodes = new Map<string, Server>();
  #key: SigningKey = makeKey("ES256", "tuesday");
  #provider: Awaited<ReturnType<typeof startProvider>> | undefined;
  readonly #ends: (() => Promise<unknown>)[] = [];
  readonly #people = new Map<string, Somebody>();
  #issuer = "";
  #metaserver: Server | undefined;
  #console: Server | undefined;
  /** One for the day: its connections stay, so that a look costs no handshake. */
  #fetchOfConsole: Fetch | undefined;
  #cookie: string | undefined;

  constructor(folder: string) {
    this.folder = folder;
    this.home = join(folder, "home");
  }

  get metaserver(): Server {
    return this.#metaserver ?? assert.fail("no MetaServer yet");
  }

  get console(): Server {
    return this.#console ?? assert.fail("no console yet");
  }

  get caDir(): string {
    return join(this.folder, "ca");
  }

  get caFile(): string {
    return join(this.caDir, "ca.crt");
  }

  /** The console's file with the hash of the operator's password. */
  get passwordFile(): string {
    return join(this.folder, "admin", "password");
  }

  get store(): string {
    return `sqlite:${join(this.folder, "meta", "metadata.db")}`;
  }

  /** Makes provider, authority and MetaServer. */
  async begin(): Promise<void> {
    await mkdir(this.home, { recursive: true });
    const provider = await startProvider();
    this.#provider = provider;
    this.#ends.push(() => provider.stop());
    answerAsIssuer(provider, this.#key);
    this.#issuer = provider.origin;
    await this.operator("ca", "init", "-ca_dir", this.caDir);
    this.#fetchOfConsole = createAuthorityFetch(await readFile(this.caFile, "utf8"));
    const place = await freePlace();
    const data = join(this.folder, "meta");
    const words = ["metaserver", "-data", data, "-ca_dir", this.caDir, "-listen", place.address];
    this.#metaserver = this.#server(place, data, [...words, "-advertise", `localhost:${place.port}`]);
    await this.#metaserver.start();
  }

  /** The provider signs with another key from now on, and publishes only that one. */
  changeKey(): void {
    this.#key = makeKey("ES256", "tuesday-later");
    if (this.#provider !== undefined) answerAsIssuer(this.#provider, this.#key);
  }

  /** A token on the MetaServer's host, the join on the new machine, and the node by its usual command. */
  async addNode(id: string, data: string, flags: readonly string[] = []): Promise<Server> {
    const place = await freePlace();
    await this.join(id, data, place);
    const words = ["fileserver", "-data", data, "-listen", place.address, ...flags];
    const node = this.#server(place, data, words, { ADMIN_PASSWORD_HASH: PASSWORD_HASH });
    this.nodes.set(id, node);
    await node.start(/"event":"registered"/);
    return node;
  }

  /** Gets a node its first certificate, or its next one. */
  async join(id: string, data: string, place: Place): Promise<void> {
    const tokenFile = join(this.folder, `${id}.token`);
    const token = await this.operator("node", "token", "-ca_dir", this.caDir, "-id", id);
    await writeFile(tokenFile, token, { mode: 0o600 });
    const meta = `localhost:${this.metaserver.place.port}`;
    const words = ["-metaserver", meta, "-data", data, "-id", id, "-advertise", place.address];
    await this.operator("node", "join", ...words, "-token_file", tokenFile);
  }

  node(id: string): Server {
    return this.nodes.get(id) ?? assert.fail(`no node ${id}`);
  }

  /** Starts the console over HTTPS, with a certificate of the authority. */
  async openConsole(flags: readonly string[] = []): Promise<void> {
    const place = await freePlace();
    const data = join(this.folder, "admin");
    await this.operator("ca", "issue", "console", "-ca_dir", this.caDir, "-host", "127.0.0.1", "-out", data);
    const file = (name: string): string => join(data, name);
    await writeFile(file("password"), `${PASSWORD_HASH}\n`, { mode: 0o600 });
    const tls = [
      "-tls_ca",
      join(this.caDir, "ca.crt"),
      "-tls_cert",
      file("console.crt"),
      "-tls_key",
      file("console.key"),
    ];
    const words = ["admin", "-data", data, "-listen", place.address, "-meta", this.store, ...tls];
    const watched = ["-password_file", file("password"), "-allow_nodes", "127.0.0.0/8"];
    const meta = ["-metaserver", this.metaserver.place.address];
    this.#console = this.#server(place, data, [...words, ...watched, ...meta, ...flags]);
    await this.#console.start(/the console is on/);
    const answer = await this.#fetch("/api/auth/login", "POST", { password: PASSWORD });
    assert.equal(answer.status, 200);
    this.#cookie = answer.headers.getSetCookie()[0]?.split(";", 1)[0];
  }

  /** Sends a request to the console as the signed-in operator. */
  async ask<Reply>(
    path: string,
    method: "DELETE" | "GET" | "POST" | "PUT" = "GET",
    body?: unknown,
  ): Promise<Reply> {
    const answer = await this.#fetch(path, method, body);
    const text = await answer.text();
    assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as Reply;
  }

  /** The first screen's inputs. */
  async firstScreen(): Promise<FirstScreen> {
    const { nodes } = await this.ask<Pick<FirstScreen, "nodes">>("/api/cluster");
    const { alerts } = await this.ask<{ alerts: AlertRecord[] }>("/api/alerts?unresolved=true");
    return { nodes, open: alerts };
  }

  /** Waits until the first screen meets a condition; returns it. */
  async untilScreen(what: string, isSo: (screen: FirstScreen) => boolean): Promise<FirstScreen> {
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      const screen = await this.firstScreen();
      if (isSo(screen)) return screen;
      if (Date.now() > deadline) assert.fail(`${what} did not come: ${JSON.stringify(screen.open, null, 1)}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /** Waits for an alert with this key, and optionally a text; returns it. */
  async alert(key: string, says = /./, severity?: AlertRecord["severity"]): Promise<AlertRecord> {
    const find = (screen: FirstScreen): AlertRecord | undefined =>
      screen.open.find(
        (alert) =>
          alert.key === key &&
          says.test(`${alert.title}\n${alert.message}`) &&
          (severity === undefined || alert.severity === severity),
      );
    const screen = await this.untilScreen(
      `the alert ${key} (${String(says)})`,
      (now) => find(now) !== undefined,
    );
    return find(screen) ?? assert.fail(key);
  }

  /** Waits until no alert with this key exists. */
  async noAlert(key: string): Promise<void> {
    await this.untilScreen(`the end of ${key}`, ({ open }) => open.every((alert) => alert.key !== key));
  }

  /** Runs an operator's command that must succeed; returns its standard output. */
  async operator(...words: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await operatorHere(words, { env: { HOME: this.home } });
    assert.equal(code, 0, `grove ${words.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** The same with lines on its standard input. */
  async operatorSays(lines: readonly string[], ...words: readonly string[]): Promise<string> {
    const input = lines.map((line) => `${line}\n`).join("");
    const { code, stdout, stderr } = await operatorHere(words, { env: { HOME: this.home }, input });
    assert.equal(code, 0, `grove ${words.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** Runs an operator's command that must be refused; returns its message. */
  async operatorRefused(...words: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await operatorHere(words, { env: { HOME: this.home } });
    assert.notEqual(code, 0, `grove ${words.join(" ")}: ${stdout}`);
    return stdout + stderr;
  }

  /** A user by name, with a session after signing in. */
  person(name: string): Somebody {
    const known = this.#people.get(name);
    if (known !== undefined) return known;
    const email = `${name}@example.com`;
    const env = {
      HOME: this.home,
      GROVE_CONFIG_DIR: join(this.home, ".config", name),
      GROVE_RETRY_SECONDS: "60",
      ...this.#identity(),
    };
    const run = (...words: readonly string[]): Promise<Ended> => groveHere(words, { env });
    const refusal = (
      code: number,
      words: readonly string[],
      { code: was, stdout, stderr }: Ended,
    ): string => {
      assert.equal(was, code, `${name}: grove ${words.join(" ")}: ${stdout}${stderr}`);
      return stderr;
    };
    const somebody: Somebody = {
      email,
      run,
      start: (...words) => startGrove(words, { env }),
      async ok(...words) {
        const { code, stdout, stderr } = await run(...words);
        assert.equal(code, 0, `${name}: grove ${words.join(" ")}: ${stderr}`);
        return stdout;
      },
      async asAdministrator(...words) {
        const ended = await groveHere(words, { env, input: `${PASSWORD}\n` });
        assert.equal(ended.code, 0, `${name}: grove ${words.join(" ")}: ${ended.stderr}`);
        return ended;
      },
      refused: async (code, ...words) => refusal(code, words, await run(...words)),
      refusedAtOnce: async (code, ...words) =>
        refusal(code, words, await groveHere(words, { env: { ...env, GROVE_RETRY_SECONDS: "0" } })),
      signIn: (patienceSeconds = 60) => {
        const meta = ["--metaserver", `localhost:${this.metaserver.place.port}`];
        const words = ["login", ...meta, "--ca", join(this.caDir, "ca.crt"), "--token-stdin"];
        const patient = { ...env, GROVE_RETRY_SECONDS: String(patienceSeconds) };
        return groveHere(words, { env: patient, input: `${this.idToken(email)}\n` });
      },
    };
    this.#people.set(name, somebody);
    return somebody;
  }

  /** An ID token as the provider signs it. */
  idToken(email: string): string {
    const now = Math.floor(Date.now() / 1_000);
    const claims = { iss: this.#issuer, aud: CLIENT_ID, sub: `sub-of-${email}`, iat: now, exp: now + 7_200 };
    return signToken(this.#key, { ...claims, email, email_verified: true });
  }

  /** Ends all processes. */
  async end(): Promise<void> {
    for (const end of this.#ends.splice(0).toReversed()) await end();
  }

  #server(
    place: Place,
    data: string,
    words: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Server {
    const server = new Server({ place, data, words, env: { HOME: this.home, ...this.#identity(), ...env } });
    this.#ends.push(() => server.stop("SIGKILL"));
    return server;
  }

  #identity(): Readonly<Record<string, string>> {
    return { IDP_CLIENT_ID: CLIENT_ID, IDP_ISSUER: this.#issuer };
  }

  #fetch(path: string, method: string, body?: unknown): Promise<Response> {
    const origin = `https://${this.console.place.address}`;
    const fetchOfConsole = this.#fetchOfConsole ?? assert.fail("no authority yet");
    return fetchOfConsole(origin + path, {
      method,
      headers: {
        origin,
        ...(this.#cookie === undefined ? {} : { cookie: this.#cookie }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }
}

/** The address of a node's status. */
export const statusUrl = ({ port }: Place, path: string): string =>
  `http://127.0.0.1:${metricsPortOf(port)}${path}`;
