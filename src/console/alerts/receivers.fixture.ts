// Real receivers for tests: an HTTP server with set answers, and an SMTP server with STARTTLS and sign-in.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { createSecureContext, TLSSocket } from "node:tls";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { WebhookPayload } from "./notification-payload.ts";

/** A self-signed certificate for 127.0.0.1 and localhost. */
export interface TestCertificate {
  readonly key: string;
  readonly cert: string;
}

/** Makes a certificate with the system's openssl. */
export function makeTestCertificate(): TestCertificate {
  const folder = scratchFolder("grove-notice-tls-");
  try {
    const [key, cert] = [join(folder, "key"), join(folder, "cert")];
    const subject = ["-subj", "/CN=receiver", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    execFileSync("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert], {
      stdio: "ignore",
    });
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One received call of a webhook. */
export interface WebhookCall {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly payload: WebhookPayload;
}

/** The receiver's answer: a status, a redirect to a path, silence, a cut, or an answer without an end. */
export type WebhookAnswer = number | { readonly redirectTo: string } | "hang" | "cut" | "endless";

/** An HTTP server that takes webhooks. */
export class WebhookReceiver {
  readonly calls: WebhookCall[] = [];
  /** Called for each request; default 200. */
  answer: (call: WebhookCall) => WebhookAnswer = () => 200;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(tls?: TestCertificate) {
    const listener: RequestListener = (incoming, outgoing) => {
      let body = "";
      incoming.setEncoding("utf8").on("data", (piece: string) => {
        body += piece;
      });
      incoming.on("end", () => {
        const payload = JSON.parse(body) as WebhookPayload;
        const call = { path: incoming.url ?? "", headers: incoming.headers, body, payload };
        this.calls.push(call);
        const answer = this.answer(call);
        if (typeof answer === "number") outgoing.writeHead(answer).end("ok");
        else if (answer === "cut") incoming.socket.destroy();
        else if (answer === "endless") {
          outgoing.writeHead(200);
          const more = (): void => {
            while (!outgoing.destroyed && outgoing.write("x".repeat(16_384)));
          };
          outgoing.on("drain", more);
          more();
        } else if (answer !== "hang") outgoing.writeHead(302, { location: answer.redirectTo }).end();
      });
    };
    this.#server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket)).on("error", () => {});
    });
  }

  /** Listens on 127.0.0.1; returns the port. */
  async listen(port = 0): Promise<number> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** A received mail. */
export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly data: string;
  readonly isEncrypted: boolean;
  readonly signedInAs: string | undefined;
}

/** The parts of an SMTP server (RFC 5321) that tests need. */
export class MailServer {
  readonly mails: ReceivedMail[] = [];
  /** Replaces the usual answer to a command such as "RCPT" or "DATA", or to "RCPT" for one address. */
  answers: Partial<Record<string, string>> = {};
  readonly #server: Server;
  readonly #tls: TestCertificate | undefined;
  readonly #login: { readonly user: string; readonly password: string } | undefined;
  readonly #sockets = new Set<Socket>();

  constructor(options: { tls?: TestCertificate; login?: { user: string; password: string } } = {}) {
    this.#tls = options.tls;
    this.#login = options.login;
    this.#server = createTcpServer((socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.write("220 test ESMTP\r\n");
      this.#converse(socket, false);
    });
  }

  async listen(): Promise<number> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #converse(socket: Socket | TLSSocket, isEncrypted: boolean): void {
    let [buffer, from, signedInAs, isData] = ["", "", undefined as string | undefined, false];
    let to: string[] = [];
    const say = (text: string): void => {
      socket.write(`${text}\r\n`);
    };
    const onData = (piece: Buffer): void => {
      buffer += piece.toString("utf8");
      for (;;) {
        const end = buffer.indexOf(isData ? "\r\n.\r\n" : "\r\n");
        if (end === -1) return;
        const line = buffer.slice(0, end);
        buffer = buffer.slice(end + (isData ? 5 : 2));
        if (isData) {
          isData = false;
          const answer = this.answers["BODY"] ?? "250 kept";
          if (answer.startsWith("250")) this.mails.push({ from, to, data: line, isEncrypted, signedInAs });
          to = [];
          say(answer);
          continue;
        }
        const verb = (/^[A-Za-z]+/.exec(line)?.[0] ?? "").toUpperCase();
        const forced = this.answers[`${verb} ${/<(.*?)>/.exec(line)?.[1]}`] ?? this.answers[verb];
        if (forced !== undefined) say(forced);
        else if (verb === "EHLO") say(this.#greeting(isEncrypted));
        else if (verb === "STARTTLS" && this.#tls !== undefined) {
          say("220 go on");
          socket.off("data", onData);
          const secureContext = createSecureContext(this.#tls);
          const secure = new TLSSocket(socket, { isServer: true, secureContext });
          secure.on("error", () => {});
          this.#converse(secure, true);
          return;
        } else if (verb === "STARTTLS") say("502 not here");
        else if (verb === "AUTH") {
          signedInAs = this.#signIn(line);
          say(signedInAs === undefined ? "535 no" : "235 yes");
        } else if (verb === "MAIL") {
          to = [];
          from = /<(.*?)>/.exec(line)?.[1] ?? "";
          say("250 ok");
        } else if (verb === "RCPT") {
          to.push(/<(.*?)>/.exec(line)?.[1] ?? "");
          say("250 ok");
        } else if (verb === "DATA") {
          isData = true;
          say("354 go on");
        } else if (verb === "QUIT") socket.end("221 bye\r\n");
        else say("250 ok");
      }
    };
    socket.on("data", onData).on("error", () => {});
  }

  #greeting(isEncrypted: boolean): string {
    const offers = ["250-test", "250-8BITMIME"];
    if (this.#tls !== undefined && !isEncrypted) offers.push("250-STARTTLS");
    if (this.#login !== undefined && (isEncrypted || this.#tls === undefined)) offers.push("250-AUTH PLAIN");
    return [...offers, "250 SIZE 1000000"].join("\r\n");
  }

  #signIn(line: string): string | undefined {
    const [, user, password] = Buffer.from(line.split(" ")[2] ?? "", "base64")
      .toString("utf8")
      .split("\0");
    return user === this.#login?.user && password === this.#login?.password ? user : undefined;
  }
}
