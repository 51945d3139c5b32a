// A door over a tree in memory, for tests: one person, whose password stands here.
import { connect, type Socket } from "node:net";
import { type Clock, systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { LogFields, Logger } from "#base/log.ts";
import { MemoryTree } from "#door/webdav/memory-tree.fixture.ts";
import type { DavResource, DavTree } from "#door/webdav/resource.ts";
import { TrustedProxies } from "#os/client-address.ts";
import { freePort } from "#testing/free-ports.ts";
import { Connections } from "./connections.ts";
import { Front } from "./front.ts";
import type { LinkVisitors } from "./link-visitors.ts";
import { type DoorCertificate, startListener } from "./listener.ts";
import { OwnHosts } from "./own-hosts.ts";
import type { DoorPages } from "./pages.ts";

/** The one pair of credentials that is right. */
export const RIGHT = { username: "alice@example.com", password: "right password" } as const;

/** The header of those credentials, or of others. */
export function basic({ username, password }: { username: string; password: string } = RIGHT): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/** A tree whose first calls wait until they are let go, as at a FileServer with much to do. */
export class HeldTree extends MemoryTree {
  readonly #held = Promise.withResolvers<void>();
  #left: number;
  underWay = 0;

  constructor(calls = Number.POSITIVE_INFINITY) {
    super();
    this.#left = calls;
  }

  letGo(): void {
    this.#held.resolve();
  }

  override async look(path: readonly string[], withLocks?: boolean): Promise<DavResource | undefined> {
    await this.#hold();
    return await super.look(path, withLocks);
  }

  override async create(...made: Parameters<MemoryTree["create"]>): Promise<DavResource | undefined> {
    await this.#hold();
    return await super.create(...made);
  }

  async #hold(): Promise<void> {
    this.underWay++;
    if (this.#left-- > 0) await this.#held.promise;
    this.underWay--;
  }
}

/** One request of HTTP/1.1 by that person, as text. */
export function requestText(door: TestDoor, line: string, body = "", ...headers: string[]): string {
  const own = [`Host: ${door.host}`, `Authorization: ${basic()}`, `Content-Length: ${body.length}`];
  return `${[`${line} HTTP/1.1`, ...own, ...headers].join("\r\n")}\r\n\r\n${body}`;
}

/** A door that listens on this machine. */
export interface TestDoor {
  readonly port: number;
  readonly host: string;
  readonly front: Front;
  readonly connections: Connections;
  /** All that was logged, as JSON lines. */
  readonly lines: string[];
  /** Passwords that were looked at. */
  readonly asked: string[];
  stop(graceMs?: number): Promise<void>;
}

/** Starts a door. */
export async function startTestDoor(
  options: {
    readonly clock?: Clock;
    readonly tree?: DavTree;
    readonly tls?: DoorCertificate;
    readonly proxies?: readonly string[];
    readonly publicUrl?: string;
    readonly visitors?: LinkVisitors;
    readonly pages?: DoorPages;
  } = {},
): Promise<TestDoor> {
  const { clock = systemClock, tree = new MemoryTree() } = options;
  const lines: string[] = [];
  const asked: string[] = [];
  const proxies = new TrustedProxies(options.proxies);
  const connections = new Connections(proxies);
  const listen = { host: "127.0.0.1", port: await freePort() };
  const hosts = new OwnHosts(options.publicUrl, listen, options.tls !== undefined);
  const people = {
    signIn: async ({ username, password }: { username: string; password: string }) => {
      asked.push(password);
      if (username !== RIGHT.username || password !== RIGHT.password) {
        throw new GroveError("TOKEN_REJECTED", "no");
      }
      return { username, tree, release: () => {} };
    },
  };
  const nobody = { open: () => Promise.reject(new GroveError("TOKEN_REJECTED", "no")) };
  const { visitors = nobody, pages } = options;
  const front = new Front({ people, visitors, pages, hosts, proxies, connections, clock, log: logTo(lines) });
  const listener = await startListener({ front, connections, tls: options.tls, clock }, listen);
  return {
    port: listener.port,
    host: `127.0.0.1:${listener.port}`,
    front,
    connections,
    lines,
    asked,
    stop: (graceMs = 0) => listener.stop(graceMs),
  };
}

/** Sends bytes as they are and resolves with all that comes back until the connection ends. */
export function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket: Socket = connect(port, "127.0.0.1", () => socket.write(text, "latin1"));
    socket.on("data", (part) => {
      answer += part.toString("latin1");
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(answer));
  });
}

function logTo(lines: string[]): Logger {
  const add = (event: string, fields: LogFields = {}): void => {
    lines.push(JSON.stringify({ event, ...fields }));
  };
  return { debug: add, info: add, warn: add, error: add, child: () => logTo(lines) };
}
