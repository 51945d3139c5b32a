// A console process, real sshds enrolled as nodes, and an operator over HTTP and WebSocket.
import assert from "node:assert/strict";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { WebSocket } from "ws";
import { GROVE_LAUNCHER } from "#testing/grove-program.ts";
import type { SshServer } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import type { Problem } from "#wire/webapi/problem.ts";
import { groveOk } from "./certificate-cluster.ts";
import { type Ended, freePlace, type Program, startGrove, startProgram, stopProgram } from "./processes.ts";

/** The test that it belongs to. */
interface Owner {
  after(hook: () => Promise<unknown>): void;
}

/** An answer of the console. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  /** Undefined when the body is no JSON. */
  readonly json: unknown;
}

/** The start of a console. */
export interface ConsoleRequest {
  readonly data: string;
  readonly store: string;
  readonly keyFile: string;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The address of an earlier console. */
  readonly address?: string;
  /** Bytes of a separate disk for its data. */
  readonly diskBytes?: number;
}

/** One message of a WebSocket. */
export interface LiveMessage {
  readonly type: string;
  readonly seq: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Enrols a sshd as a node, like an operator with its host's key. */
export async function enrol(
  store: string,
  id: string,
  server: SshServer,
  options: {
    readonly services?: object;
    readonly flags?: readonly string[];
    readonly repository?: string;
  } = {},
): Promise<void> {
  const { user, host, port, hostKey, home } = server;
  const words = ["node", "add", id, `${user}@${host}:${port}`, "-meta", store, "-host_key", hostKey];
  const file = join(server.programs, "..", "services.json");
  if (options.services !== undefined) await writeFile(file, JSON.stringify(options.services));
  const services = options.services === undefined ? [] : ["-services", file];
  await groveOk([...words, "-repository", options.repository ?? home, ...services, ...(options.flags ?? [])]);
}

/** A console with an operator's session. */
export class ActionConsole {
  readonly url: string;
  readonly address: string;
  /** Its data folder by its own path. */
  readonly data: string;
  readonly #program: Program | undefined;
  #token = "";

  private constructor(address: string, program?: Program, data = "") {
    this.address = address;
    this.data = data;
    this.url = `http://${address}`;
    this.#program = program;
  }

  /** A console started elsewhere; rejects when none listens. */
  static async at(address: string): Promise<ActionConsole> {
    const found = new ActionConsole(address);
    await found.signIn();
    return found;
  }

  /** Starts `grove admin` and signs in. */
  static async start(t: Owner, options: ConsoleRequest): Promise<ActionConsole> {
    const address = options.address ?? (await freePlace()).address;
    const words = ["admin", "-data", options.data, "-listen", address, "-meta", options.store];
    const more = ["-ssh_key", options.keyFile, "-allow_nodes", "127.0.0.0/8", ...(options.flags ?? [])];
    const program = startOnDisk(options, [...words, ...more]);
    t.after(() => stopProgram(program, "SIGKILL"));
    await program.says(/the console is on/);
    const started = new ActionConsole(address, program, `/proc/${program.child.pid}/root${options.data}`);
    await started.signIn();
    return started;
  }

  /** Its process. */
  get pid(): number {
    return this.#program?.child.pid ?? 0;
  }

  /** Its log. */
  get log(): string {
    return this.#program?.output() ?? "";
  }

  /** A new session. */
  async signIn(): Promise<void> {
    const login = await fetch(`${this.url}/api/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"password":"admin"}',
    });
    assert.equal(login.status, 200, await login.text());
    this.#token = /svc_admin_token=([0-9a-f]{64})/.exec(login.headers.getSetCookie()[0] ?? "")?.[1] ?? "";
  }

  /** Sends a request as the operator; a body makes it a POST. */
  async ask(path: string, body?: object | string, headers: Record<string, string> = {}): Promise<Answer> {
    const post = { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) };
    const answer = await fetch(this.url + path, {
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : post),
    });
    const text = await answer.text();
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      // No JSON.
    }
    return { status: answer.status, text, json };
  }

  /** Runs an action to its end. */
  async execute(request: object): Promise<ActionRecord> {
    const { status, json, text } = await this.ask("/api/actions/execute", request);
    assert.equal(status, 200, text);
    return json as ActionRecord;
  }

  /** Begins an action; answers its id. */
  async begin(request: object): Promise<string> {
    const { status, json, text } = await this.ask("/api/actions/run", request);
    assert.equal(status, 202, text);
    return (json as { id: string }).id;
  }

  /** Sends a request that must be refused. */
  async refused(request: object, path = "/api/actions/execute"): Promise<Problem> {
    const { status, json, text } = await this.ask(path, request);
    assert.equal(status >= 400, true, text);
    return json as Problem;
  }

  /** The current record. */
  async record(id: string): Promise<ActionRecord> {
    const { status, json, text } = await this.ask(`/api/actions/${id}`);
    assert.equal(status, 200, text);
    return json as ActionRecord;
  }

  /** The record once it has ended. */
  ended(id: string): Promise<ActionRecord> {
    return until(async () => {
      const record = await this.record(id);
      return record.finished_at === undefined ? undefined : record;
    }, `the end of ${id}`);
  }

  /** All records, the newest first. */
  async history(): Promise<ActionRecord[]> {
    return ((await this.ask("/api/actions/history?order=newest")).json as { records: ActionRecord[] })
      .records;
  }

  /** The whole output of one stream of a node, or of all. */
  async output(
    id: string,
    wanted: { readonly node?: string; readonly stream?: string } = {},
  ): Promise<string> {
    let [text, after] = ["", 0];
    for (;;) {
      const node = wanted.node === undefined ? "" : `&node=${wanted.node}`;
      const page = (await this.ask(`/api/actions/${id}/output?after_seq=${after}${node}`)).json as {
        entries: { stream: string; data: string }[];
        next_seq: number;
        complete: boolean;
      };
      for (const { stream, data } of page.entries) {
        if (wanted.stream === undefined || wanted.stream === stream) text += data;
      }
      if (page.next_seq === after || page.complete) return text;
      after = page.next_seq;
    }
  }

  /** A socket on /ws/actions that follows a topic from its opening on. */
  follow(topic: object, onMessage: (message: LiveMessage) => void): WebSocket {
    const socket = new WebSocket(`ws://${this.address}/ws/actions`, {
      headers: { authorization: `Bearer ${this.#token}` },
    });
    socket.on("error", () => undefined);
    socket.on("open", () => socket.send(JSON.stringify({ type: "subscribe", ...topic })));
    socket.on("message", (raw: Buffer) => onMessage(JSON.parse(raw.toString()) as LiveMessage));
    return socket;
  }

  /** The console's lines of the audit log about actions. */
  async audit(): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return ((await this.ask("/api/audit?act=action.*")).json as { entries: Record<string, unknown>[] })
      .entries;
  }

  /** Takes all free space of its disk; the returned function frees it. */
  fillDisk(): () => void {
    const path = join(this.data, "filler");
    const file = openSync(path, "w");
    for (const bytes of [65_536, 4_096, 1]) {
      try {
        while (writeSync(file, Buffer.alloc(bytes)) > 0);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      }
    }
    closeSync(file);
    return () => rmSync(path);
  }

  /** Stops it; by SIGKILL without any cleanup. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<Ended | undefined> {
    return this.#program === undefined ? undefined : await stopProgram(this.#program, signal);
  }
}

function startOnDisk({ data, diskBytes, env = {} }: ConsoleRequest, words: readonly string[]): Program {
  if (diskBytes === undefined) return startGrove(words, { env });
  mkdirSync(data, { recursive: true });
  const line = `mount -t tmpfs -o size=${diskBytes},mode=700 none "$0" && exec "$@"`;
  return startProgram("unshare", ["-m", "sh", "-c", line, data, GROVE_LAUNCHER, ...words], { env });
}

/** A shell line on these nodes. */
export function custom(nodes: readonly string[], command: string, more: object = {}): object {
  return { action: "custom", nodes, command, ...more };
}

/** Whether a process runs, by its id or by its words with blanks between them. A zombie does not count. */
export function isRunning(process: number | string): boolean {
  return countRunning(process) > 0;
}

/** The number of such processes. */
export function countRunning(process: number | string): number {
  const pids =
    typeof process === "number"
      ? [String(process)]
      : readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => {
    try {
      if (/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"))) return false;
      return (
        typeof process === "number" ||
        readFileSync(`/proc/${pid}/cmdline`, "utf8") === `${process.replaceAll(" ", "\0")}\0`
      );
    } catch {
      return false;
    }
  }).length;
}
