// What HTTP/2 alone lets a client send: methods of any name, bodies without a length, two hosts.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from "node:http2";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { basic, startTestDoor, type TestDoor } from "./door.fixture.ts";

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

for (const method of ["constructor", "toString", "__proto__", "hasOwnProperty", "POST"]) {
  test(`the method ${method} is answered 405 like any that is not there`, async () => {
    assert.equal(await ask({ ":method": method, ":path": "/dav/" }), 405);
  });
}

test("a body without a length is taken whole, and where none belongs it is refused", async () => {
  assert.equal(await ask({ ":method": "PUT", ":path": "/dav/untold" }, "hello"), 201);
  assert.equal(await ask({ ":method": "PUT", ":path": "/dav/none" }), 201);
  assert.equal(await ask({ ":method": "MKCOL", ":path": "/dav/folder" }, "hello"), 415);
  assert.equal(await ask({ ":method": "MKCOL", ":path": "/dav/folder" }), 201);
});

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

test("nobody is left waiting, and no failure of the door was logged", () => {
  assert.equal(door.front.load.underWay, 0);
  assert.doesNotMatch(door.lines.join("\n"), /dav_failed|door_failed/u);
});
