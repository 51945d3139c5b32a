// The paths by which secrets reach servers: each makes a fresh canary and sends it.
import { createHash } from "node:crypto";
import { createConnection } from "node:net";
import { WebSocket } from "ws";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";

/** Addresses of the servers. */
export interface Doors {
  readonly fileserver: string;
  readonly metaserver: string;
  /** http://host:port. */
  readonly console: string;
  /** http://host:port of the FileServer's metrics. */
  readonly metrics: string;
  readonly password: string;
}

/** A secret that was sent, or issued by a server, and the answers to it. */
export interface Sent {
  /** Every form in which it was sent. */
  readonly needles: readonly string[];
  /** Answers that must not contain the secret; without the one reply that issues it. */
  readonly answers: readonly string[];
}

/** A path by its name. */
export type Path = (doors: Doors, letters: string) => Promise<Sent>;

const channels = new Map<string, GrpcChannel>();

function channelTo(address: string): GrpcChannel {
  const known = channels.get(address);
  if (known !== undefined) return known;
  const made = new GrpcChannel({ addresses: [address] });
  channels.set(address, made);
  return made;
}

/** Closes what the paths opened. */
export function closePaths(): void {
  for (const channel of channels.values()) channel.close();
  channels.clear();
}

const files = ({ fileserver }: Doors): Client<typeof FileServer> =>
  createClient(FileServer, channelTo(fileserver));
const meta = ({ metaserver }: Doors): Client<typeof MetaServer> =>
  createClient(MetaServer, channelTo(metaserver));

/** Returns a call's answer as text, success or not: reply, status, trailers. */
async function said(call: Promise<unknown>): Promise<string> {
  try {
    return JSON.stringify(await call, (_key, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
  } catch (error) {
    const { message, metadata, details } = error as {
      message: string;
      metadata?: unknown;
      details?: unknown;
    };
    return `${message} ${JSON.stringify(metadata)} ${JSON.stringify(details)}`;
  }
}

async function asked(url: string, init: RequestInit = {}): Promise<string> {
  const answer = await fetch(url, { redirect: "manual", ...init });
  return `${answer.status} ${JSON.stringify([...answer.headers])} ${await answer.text()}`;
}

const json = (body: string, headers: Readonly<Record<string, string>> = {}): RequestInit => ({
  method: "POST",
  body,
  headers: { "content-type": "application/json", ...headers },
});
const hex = (letters: string): string => createHash("sha256").update(letters).digest("hex");
const jwt = (letters: string): string =>
  [
    { alg: "RS256", kid: "k" },
    { email: "a@example.com", nonce: letters },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .concat(hex(letters).slice(0, 43))
    .join(".");

/** Sends these bytes, and returns all that came back. */
function raw(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = createConnection(Number(port), hostname);
  let answer = "";
  socket.setTimeout(5_000, () => socket.destroy());
  socket.on("data", (piece: Buffer) => {
    answer += piece.toString("latin1");
  });
  socket.on("error", () => undefined);
  socket.on("close", () => resolve(answer));
  socket.end(text);
  return promise;
}

/** Every path. */
export const PATHS: Readonly<Record<string, Path>> = {
  async "session token of a sign-in"(doors, letters) {
    const claims = { email: `u${letters}@example.com`, email_verified: true, jti: letters };
    const idToken = `mock-jwt.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
    const { sessionToken } = await files(doors).registerClient(
      {},
      { metadata: { authorization: `Bearer ${idToken}` } },
    );
    const metadata = { authorization: `Bearer ${sessionToken}` };
    const answers = [
      await said(files(doors).listSessions({}, { metadata })),
      await said(files(doors).getAttr({ path: "/nothing" }, { metadata })),
      await said(files(doors).explain({ path: "/" }, { metadata })),
      await said(files(doors).endSession({}, { metadata })),
      await said(files(doors).getAttr({ path: "/" }, { metadata })),
    ];
    return { needles: [sessionToken, idToken.slice(9)], answers };
  },
  async "ID token that is refused"(doors, letters) {
    const token = jwt(letters);
    const metadata = { authorization: `Bearer ${token}` };
    const answers = [
      await said(files(doors).registerClient({}, { metadata })),
      await said(meta(doors).getRoots({}, { metadata })),
    ];
    return { needles: [token, token.split(".")[1] ?? ""], answers };
  },
  async "session token that is refused"(doors, letters) {
    const token = `sst_${hex(letters).slice(0, 43)}`;
    const metadata = { authorization: `Bearer ${token}` };
    const answers = [
      await said(files(doors).getAttr({ path: "/" }, { metadata })),
      await said(meta(doors).getRoots({}, { metadata })),
    ];
    return { needles: [token], answers };
  },
  async "token by another scheme"(doors, letters) {
    const secret = `Sch${hex(letters).slice(0, 30)}`;
    const answers = await Promise.all(
      [`Basic ${secret}`, `bearer  ${secret} x`, secret].map((authorization) =>
        said(files(doors).getAttr({ path: "/" }, { metadata: { authorization } })),
      ),
    );
    return { needles: [secret], answers };
  },
  async "administrator's password hash that is wrong"(doors, letters) {
    const metadata = { "x-admin-password-hash": hex(letters) };
    const answers = [
      await said(files(doors).setQuota({ username: "a@example.com", quotaBytes: 5n }, { metadata })),
    ];
    return { needles: [hex(letters)], answers };
  },
  async "join token"(doors, letters) {
    const secret = hex(letters).slice(0, 43);
    const token = `gjt_${hex(letters).slice(0, 16)}.${secret}.${"0".repeat(64)}`;
    return { needles: [secret], answers: [await said(meta(doors).joinNode({ token, nodeId: "n7" }))] };
  },
  async "metrics token that is wrong"(doors, letters) {
    const token = `Metrics-${hex(letters).slice(0, 24)}`;
    const headers = { authorization: `Bearer ${token}` };
    const answers = [
      await asked(`${doors.metrics}/metrics`, { headers }),
      await asked(`${doors.console}/metrics`, { headers }),
    ];
    return { needles: [token], answers };
  },
  async "operator's password that is wrong"(doors, letters) {
    const password = `Guess ${letters}!`;
    const body = JSON.stringify({ password });
    const answers = [
      await asked(`${doors.console}/api/auth/login`, json(body)),
      await asked(`${doors.console}/api/auth/login`, json(body.slice(0, -1))),
      await asked(
        `${doors.console}/api/auth/login`,
        json(JSON.stringify({ pass: password, password: [password] })),
      ),
      await asked(`${doors.console}/api/auth/login`, {
        ...json(`password=${password}`),
        headers: { "content-type": "text/plain" },
      }),
    ];
    return { needles: [password, encodeURIComponent(password)], answers };
  },
  async "operator's token of a sign-in"(doors) {
    const login = await fetch(
      `${doors.console}/api/auth/login`,
      json(JSON.stringify({ password: doors.password })),
    );
    const token = /svc_admin_token=([0-9a-f]{64})/.exec(login.headers.get("set-cookie") ?? "")?.[1] ?? "";
    if (token === "") throw new Error(`the rig cannot sign in: ${login.status}`);
    const headers = { authorization: `Bearer ${token}` };
    const answers = [
      await login.text(),
      await asked(`${doors.console}/api/auth/sessions`, { headers }),
      await asked(`${doors.console}/api/users?token=${token}`),
      await asked(`${doors.console}/api/nothing?token=${token}`),
      await asked(`${doors.console}/api/users/%zz?token=${token}`),
      await asked(`${doors.console}/api/audit`, { headers }),
      await asked(`${doors.console}/api/settings`, { headers: { cookie: `svc_admin_token=${token}` } }),
      await asked(`${doors.console}/api/auth/logout`, json("{}", headers)),
    ];
    return { needles: [token], answers };
  },
  async "operator's token that is wrong"(doors, letters) {
    const token = hex(letters);
    const answers = [
      await asked(`${doors.console}/api/users?token=${token}`),
      await asked(`${doors.console}/api/cluster`, { headers: { authorization: `Bearer ${token}` } }),
      await asked(`${doors.console}/api/cluster`, {
        headers: { cookie: `svc_admin_token=${token}; x=${token}` },
      }),
      await raw(
        doors.console,
        `GET /api/users?token=${token} HTTP/1.1\r\nHost: a\r\nHost: b\r\nAuthorization: ${token}\r\n\r\n`,
      ),
      await raw(doors.console, `GET /?token=${token} nonsense\r\nCookie: ${token}\r\n\r\n`),
    ];
    return { needles: [token], answers };
  },
  async "ticket for a socket"(doors, letters) {
    const ticket = hex(letters).slice(0, 43);
    const socket = new WebSocket(`${doors.console.replace("http", "ws")}/ws/cluster?token=${ticket}`, [
      "svc.v1",
      `ticket.${ticket}`,
    ]);
    const answers: string[] = [];
    await new Promise<void>((resolve) => {
      socket.on("message", (data) => answers.push((data as Buffer).toString()));
      socket.on("upgrade", (response) => answers.push(JSON.stringify(response.headers)));
      socket.on("error", () => resolve());
      socket.on("close", () => resolve());
      setTimeout(() => socket.terminate(), 300);
    });
    return { needles: [ticket], answers };
  },
  async "mock token in capitals"(doors, letters) {
    const secret = Buffer.from(`{"email":"${letters}"}`).toString("base64url");
    const metadata = { authorization: `Bearer MOCK-JWT.${secret}` };
    return { needles: [secret], answers: [await said(files(doors).registerClient({}, { metadata }))] };
  },
};
