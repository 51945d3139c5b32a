// What HTTP/2 alone lets a client send: methods of any name, bodies without a length, two hosts.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
} from "node:http2";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { FrameFlag, FrameType, hpack, RawHttp2, rawFrame } from "#testing/raw-http2.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { basic, startTestDoor, type TestDoor } from "./door.fixture.ts";
import { DOOR_REQUESTS_PER_TURN, DOOR_RESETS_AT_ONCE, DOOR_RESETS_PER_SECOND } from "./door-limits.ts";

let door: TestDoor;
let session: ClientHttp2Session;
before(async () => {
  const folder = scratchFolder("hostile-h2-");
  const [keyFile, certFile] = [join(folder, "door.key"), join(folder, "door.pem")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const subject = ["-subj", "/CN=door", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", keyFile, "-out", certFile], {
    stdio: "ignore",
  });
  const cert = readFileSync(certFile, "utf8");
  door = await startTestDoor({ tls: { cert, key: readFileSync(keyFile, "utf8") } });
  session = connect(`https://${door.host}`, { ca: cert });
});
after(async () => {
  session.destroy();
  await door.stop();
});

/** The status of an answer, "cut" for none. A body is sent without a length. */
function ask(headers: OutgoingHttpHeaders, body?: string): Promise<number | "cut"> {
  return new Promise((resolve) => {
    const stream = session.request({ authorization: basic(), ...headers }, { endStream: body === undefined });
    let status: number | "cut" = "cut";
    stream.on("response", (answer) => {
      status = answer[":status"] ?? "cut";
    });
    stream.on("error", () => undefined);
    stream.on("close", () => resolve(status));
    stream.resume();
    if (body !== undefined) stream.end(body);
  });
}

/** The text of a file. */
async function textOf(path: string): Promise<string> {
  const stream = session.request({ authorization: basic(), ":path": path });
  return Buffer.concat(await stream.toArray()).toString();
}

for (const method of ["constructor", "toString", "__proto__", "hasOwnProperty", "POST"]) {
  test(`the method ${method} is answered 405 like any that is not there`, async () => {
    assert.equal(await ask({ ":method": method, ":path": "/dav/" }), 405);
  });
}

test("a path whose letters are not percent-encoded is refused, and names nothing else", async () => {
  assert.equal(await ask({ ":method": "PUT", ":path": "/dav/caf\u00e9" }, "hello"), 400);
  assert.equal(await ask({ ":method": "PUT", ":path": "/dav/caf%C3%A9" }, "hello"), 201);
  assert.equal(await ask({ ":method": "GET", ":path": "/dav/caf%C3%83%C2%A9" }), 404);
});

test("a body without a length is taken whole, and where none belongs it is refused", async () => {
  assert.equal(await ask({ ":method": "PUT", ":path": "/dav/untold" }, "hello"), 201);
  assert.equal(await ask({ ":method": "PUT", ":path": "/dav/none" }), 201);
  assert.equal(await ask({ ":method": "MKCOL", ":path": "/dav/folder" }, "hello"), 415);
  assert.equal(await ask({ ":method": "MKCOL", ":path": "/dav/folder" }), 201);
});

/** Sends a part of a body and goes away by `cut`. */
async function sendPart(
  headers: OutgoingHttpHeaders,
  cut: (own: ClientHttp2Session, stream: ClientHttp2Stream) => void,
): Promise<void> {
  const own = connect(`https://${door.host}`, { rejectUnauthorized: false });
  own.on("error", () => undefined);
  const path = { ":method": "PUT", ":path": "/dav/cut" };
  const stream = own.request({ authorization: basic(), ...path, ...headers }, { endStream: false });
  stream.on("error", () => undefined);
  await new Promise<void>((resolve) => stream.write(Buffer.alloc(1_000, "x"), () => resolve()));
  await until(() => door.front.load.underWay === 1);
  cut(own, stream);
  await until(() => door.front.load.underWay === 0);
  own.destroy();
}

for (const [what, cut] of [
  ["is reset", (_own, stream) => void stream.destroy(new Error("given up"))],
  ["loses its connection", (own) => void own.socket.destroy()],
  ["loses its session", (own) => own.destroy()],
] as [string, (own: ClientHttp2Session, stream: ClientHttp2Stream) => void][]) {
  test(`a PUT that ${what} in the middle of its body changes nothing`, async () => {
    for (const headers of [{}, { "content-length": "5000" }, { "content-length": "500000" }]) {
      await sendPart(headers, cut);
      assert.equal(await ask({ ":method": "GET", ":path": "/dav/cut" }), 404, "no part becomes a file");
      assert.equal(await ask({ ":method": "PUT", ":path": "/dav/cut" }, "whole"), 201);
      await sendPart(headers, cut);
      assert.equal(await textOf("/dav/cut"), "whole");
      assert.equal(await ask({ ":method": "DELETE", ":path": "/dav/cut" }), 204);
    }
  });
}

test("another host, in the authority or beside it, reaches nothing", async () => {
  const path = { ":method": "GET", ":path": "/dav/" };
  assert.equal(await ask({ ...path, ":authority": "evil.example" }), 421);
  assert.equal(await ask({ ...path, ":authority": door.host, host: "evil.example" }), 400);
  assert.equal(await ask({ ":method": "GET", ":path": "http://evil.example/dav/" }), "cut");
});

test("a refused stream ends whose body never does, with its answer whole", async () => {
  const headers = { ":method": "PUT", ":path": "/dav/endless", "x-a": "a".repeat(8_000) };
  const streams = Array.from({ length: 20 }, () => session.request(headers, { endStream: false }));
  const answers = streams.map(async (stream) => {
    let text = "";
    stream.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    await new Promise<void>((resolve) => stream.once("close", () => resolve()));
    assert.equal(stream.rstCode, 0);
    return text;
  });
  for (const text of await Promise.all(answers)) assert.match(text, /^sign in with/u);
  await until(() => door.front.load.underWay === 0);
});

test("an answer has its end before the stream of a body that never ends is reset", async () => {
  const raw = await RawHttp2.connect(door.port, true, "127.0.0.1", true);
  const headers = hpack([
    [":method", "PUT"],
    [":scheme", "https"],
    [":path", "/dav/endless"],
    [":authority", door.host],
  ]);
  await raw.send(FrameType.HEADERS, FrameFlag.END_HEADERS, 1, headers);
  const reset = await raw.frame(({ type }) => type === FrameType.RST_STREAM);
  assert.equal(reset?.payload.readUInt32BE(), 0);
  const ends = raw.frames.filter(
    ({ type, flags }) => type === FrameType.DATA && (flags & FrameFlag.END_STREAM) !== 0,
  );
  assert.equal(ends.length, 1);
  raw.close();
});

test("nobody is left waiting, and no failure of the door was logged", () => {
  assert.equal(door.front.load.underWay, 0);
  assert.doesNotMatch(door.lines.join("\n"), /dav_failed|door_failed/u);
});

test("streams that are reset with their headers are hardly looked at, and more than a browser leaves end the connection", async () => {
  /** TLS reads 16,384 bytes at a time. */
  const READS = 4;
  const before = door.asked.length;
  const pair = Buffer.from("alice@example.com:reset password").toString("base64");
  const headers = hpack([
    [":method", "GET"],
    [":scheme", "https"],
    [":path", "/dav/"],
    [":authority", door.host],
    ["authorization", `Basic ${pair}`],
  ]);
  const flags = FrameFlag.END_HEADERS | FrameFlag.END_STREAM;
  const left = (count: number, from: number): Buffer =>
    Buffer.concat(
      Array.from({ length: count }, (_, at) => {
        const id = (from + at) * 2 + 1;
        const asked = rawFrame(FrameType.HEADERS, flags, id, headers);
        return Buffer.concat([asked, rawFrame(FrameType.RST_STREAM, 0, id, Buffer.from([0, 0, 0, 8]))]);
      }),
    );
  const raw = await RawHttp2.connect(door.port, true, "127.0.0.1", true);
  await raw.write(left(DOOR_RESETS_AT_ONCE, 0));
  await raw.send(FrameType.PING, 0, 0, Buffer.alloc(8));
  await until(() =>
    raw.frames.some(({ type, flags: of }) => type === FrameType.PING && of === FrameFlag.ACK),
  );
  assert.equal(raw.isClosed, false);
  const looked = door.asked.length - before;
  assert.ok(looked <= DOOR_REQUESTS_PER_TURN * READS, `${looked} of ${DOOR_RESETS_AT_ONCE} were looked at`);
  // The second in which they came may have saved up new ones.
  await raw.write(left(2 * DOOR_RESETS_PER_SECOND + 1, DOOR_RESETS_AT_ONCE));
  await raw.closed;
  raw.close();
});
