// Requests that no honest program sends: each is refused with a sentence, and none reaches a file.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { basic, sendRaw, startTestDoor, type TestDoor } from "./door.fixture.ts";

let door: TestDoor;
before(async () => {
  door = await startTestDoor();
});
after(() => door.stop());

/** Stands for a request that names no host. */
const NO_HOST = "Host";

/** Sends one request; its connection ends with the answer. */
async function ask(line: string, headers: readonly string[] = [], body = ""): Promise<string> {
  const named = headers.some((header) => /^host/iu.test(header)) ? [] : [`Host: ${door.host}`];
  const sent = [...named, ...headers].filter((header) => header !== NO_HOST);
  const head = [`${line} HTTP/1.1`, ...sent, "Connection: close"].join("\r\n");
  return await sendRaw(door.port, `${head}\r\n\r\n${body}`);
}

const SIGNED_IN = `Authorization: ${basic()}`;
const status = (answer: string): string => answer.split(" ", 2)[1] ?? "nothing";

const REFUSED: readonly (readonly [string, string, readonly string[], string, string?])[] = [
  ["without credentials", "GET /dav/", [], "401"],
  ["with a cookie alone", "GET /dav/", ["Cookie: __Host-door=1"], "401"],
  ["with a bearer token", "GET /dav/", ["Authorization: Bearer abc"], "401"],
  ["with credentials that are no UTF-8", "GET /dav/", ["Authorization: Basic /zr/"], "401"],
  ["from a browser", "GET /dav/", [SIGNED_IN, "Sec-Fetch-Site: same-origin"], "403"],
  ["from a service worker", "GET /dav/", [SIGNED_IN, "Service-Worker: script"], "403"],
  ["through an unnamed proxy", "GET /dav/", [SIGNED_IN, "X-Forwarded-For: 127.0.0.1"], "403"],
  ["with another host", "GET /dav/", ["Host: evil.example", SIGNED_IN], "421"],
  ["with another host in the address", "GET http://evil.example/dav/", [SIGNED_IN], "421"],
  ["with the host of a rebound name", "GET /", ["Host: evil.example:8070"], "421"],
  ["without a host", "GET /dav/", [NO_HOST, SIGNED_IN], "400"],
  ["with two hosts", "GET /dav/", ["Host: 127.0.0.1", "Host: evil.example", SIGNED_IN], "400"],
  ["with two lengths", "PUT /dav/x", [SIGNED_IN, "Content-Length: 3", "Content-Length: 4"], "400", "abcd"],
  ["with a length twice", "PUT /dav/x", [SIGNED_IN, "Content-Length: 3", "Content-Length: 3"], "400", "abc"],
  [
    "with length and chunks",
    "PUT /dav/x",
    [SIGNED_IN, "Content-Length: 3", "Transfer-Encoding: chunked"],
    "400",
    "0\r\n\r\n",
  ],
  ["with an unknown coding", "PUT /dav/x", [SIGNED_IN, "Transfer-Encoding: xchunked"], "400", "0\r\n\r\n"],
  [
    "with packed chunks",
    "PUT /dav/packed",
    [SIGNED_IN, "Transfer-Encoding: gzip, chunked"],
    "501",
    "3\r\nabc\r\n0\r\n\r\n",
  ],
  [
    "with chunks of no number",
    "PUT /dav/x",
    [SIGNED_IN, "Transfer-Encoding: chunked"],
    "400",
    "zz\r\nabc\r\n",
  ],
  ["with a folded header", "GET /dav/", [SIGNED_IN, "X-A: b\r\n c"], "400"],
  ["with a blank before the colon", "GET /dav/", [SIGNED_IN, "X-A : b"], "400"],
  ["with 50,000 bytes of headers", "GET /dav/", [SIGNED_IN, `X-A: ${"a".repeat(50_000)}`], "431"],
  ["with 150 headers", "GET /dav/", [SIGNED_IN, ...Array<string>(150).fill("A: b")], "431"],
  ["with two destinations", "MOVE /dav/x", [SIGNED_IN, "Destination: /dav/a", "Destination: /dav/b"], "400"],
  ["to another server", "COPY /dav/x", [SIGNED_IN, "Destination: http://evil.example/dav/y"], "502"],
  ["with an unknown expectation", "PUT /dav/x", [SIGNED_IN, "Expect: coffee", "Content-Length: 3"], "417"],
  ["with an encoded slash", "GET /dav/a%2Fb", [SIGNED_IN], "400"],
  ["with an encoded NUL", "GET /dav/a%00b", [SIGNED_IN], "400"],
  ["with dot segments", "GET /dav/a/../b", [SIGNED_IN], "400"],
  ["with encoded dot segments", "GET /dav/%2e%2e/b", [SIGNED_IN], "400"],
  ["with bad UTF-8", "GET /dav/%ff", [SIGNED_IN], "400"],
  ["with raw bytes", "GET /dav/\xff", [SIGNED_IN], "400"],
  ["with an If without end", "GET /dav/", [SIGNED_IN, `If: ${"(".repeat(8_000)}`], "400"],
  ["by TRACE", "TRACE /dav/", [SIGNED_IN], "405"],
  ["elsewhere", "GET /api/files", [SIGNED_IN], "404"],
];

for (const [what, line, headers, expected, body] of REFUSED) {
  test(`a request ${what} is answered ${expected}`, async () => {
    const answer = await ask(line, headers, body);
    assert.equal(status(answer), expected, answer);
    assert.match(answer, /\r\n\r\n[^]*\w+ \w+/u, "a sentence says why");
  });
}

test("a body in an unknown coding makes no file", async () => {
  const chunks = "3\r\nabc\r\n0\r\n\r\n";
  await ask("PUT /dav/coded", [SIGNED_IN, "Transfer-Encoding: gzip, chunked"], chunks);
  assert.equal(status(await ask("HEAD /dav/coded", [SIGNED_IN])), "404");
  await ask("PUT /dav/coded", [SIGNED_IN, "Transfer-Encoding: Chunked"], chunks);
  assert.equal(status(await ask("HEAD /dav/coded", [SIGNED_IN])), "200");
});

test("a packed body is 415 and stored nowhere, also at a link, and one said to be as it is is taken", async () => {
  const put = (address: string, encoding: string): Promise<string> =>
    ask(`PUT ${address}`, [SIGNED_IN, `Content-Encoding: ${encoding}`, "Content-Length: 5"], "bytes");
  for (const address of ["/dav/packed-body", "/l/aaaaaaaaaaaa/packed-body"]) {
    const refused = await put(address, "gzip");
    assert.equal(status(refused), "415", address);
    assert.match(refused, /send this one without Content-Encoding/u);
  }
  assert.equal(status(await ask("GET /dav/packed-body", [SIGNED_IN])), "404");
  assert.equal(status(await put("/dav/packed-body", "identity")), "201");
});

test("10,000 ranges are answered with the whole file, and an XML bomb with 400", async () => {
  await ask("PUT /dav/ranges", [SIGNED_IN, "Content-Length: 3"], "abc");
  const ranges = `Range: bytes=${Array<string>(10_000).fill("0-0").join(",")}`;
  assert.match(await ask("GET /dav/ranges", [SIGNED_IN, ranges]), /^HTTP\/1.1 200 [^]*\r\n\r\nabc$/u);
  const bomb = `<!DOCTYPE a [<!ENTITY b "${"c".repeat(100)}"><!ENTITY d "&b;&b;&b;">]><a>&d;</a>`;
  const answer = await ask("PROPFIND /dav/", [SIGNED_IN, `Content-Length: ${bomb.length}`, "Depth: 0"], bomb);
  assert.equal(status(answer), "400", answer);
  const deep = '<a xmlns="DAV:">'.repeat(1_000);
  assert.equal(
    status(await ask("PROPFIND /dav/", [SIGNED_IN, `Content-Length: ${deep.length}`, "Depth: 0"], deep)),
    "400",
  );
  const large = "PROPFIND /dav/";
  assert.equal(
    status(await ask(large, [SIGNED_IN, "Content-Length: 70000", "Depth: 0"], "a".repeat(70_000))),
    "413",
  );
});

test("a request behind another in one body is never answered", async () => {
  const inner = `PUT /dav/smuggled HTTP/1.1\r\nHost: ${door.host}\r\n${SIGNED_IN}\r\nContent-Length: 1\r\n\r\nx`;
  const answer = await sendRaw(
    door.port,
    `PUT /dav/outer HTTP/1.1\r\nHost: ${door.host}\r\nConnection: close\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
  );
  assert.equal(answer.match(/HTTP\/1.1 /gu)?.length, 1, answer);
  assert.equal(status(await ask("GET /dav/smuggled", [SIGNED_IN])), "404");
});

test("a client that waits for leave to send a body is refused before it sends one", async () => {
  const answer = await ask("PUT /dav/x", ["Expect: 100-continue", "Content-Length: 3"]);
  assert.match(answer, /^HTTP\/1.1 401 /u);
  assert.match(
    await ask("PUT /dav/x", [SIGNED_IN, "Expect: 100-continue", "Content-Length: 3"], "abc"),
    /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 201 /u,
  );
});

test("the answer to a large body that is refused arrives whole", async () => {
  const bytes = 3_000_000;
  const answer = await ask("PUT /dav/x", [`Content-Length: ${bytes}`], "a".repeat(bytes));
  assert.match(answer, /^HTTP\/1.1 401 [^]*app password/u);
});

test("a folder that is there is 200 to GET and HEAD, as text, and one that is not is 404", async () => {
  assert.match(
    await ask("GET /dav/", [SIGNED_IN]),
    /^HTTP\/1.1 200 [^]*\r\ncontent-type: text\/plain; [^]*\r\n\r\nThis is a folder/u,
  );
  assert.match(
    await ask("HEAD /dav/", [SIGNED_IN]),
    /^HTTP\/1.1 200 [^]*\r\ncontent-length: \d\d[^]*\r\n\r\n$/u,
  );
  assert.equal(status(await ask("HEAD /dav/none/", [SIGNED_IN])), "404");
});

test("OPTIONS of the whole server says that there is WebDAV, and its top is a page without scripts", async () => {
  for (const target of ["/", "*"]) {
    const answer = await ask(`OPTIONS ${target}`);
    assert.match(answer, /^HTTP\/1.1 200 /u);
    assert.match(answer, /\r\nms-author-via: DAV\r\n/u);
  }
  const page = await ask("GET /");
  assert.match(page, new RegExp(`<code>http://${door.host.replaceAll(".", "\\.")}/dav/</code>`, "u"));
  assert.match(page, /content-security-policy: default-src 'none'/u);
  assert.doesNotMatch(page, /<script/u);
  assert.match(await ask("GET /health", ["Host: load-balancer"]), /\r\n\r\nok\n$/u);
});

test("a network that guesses is shut out, but for credentials that were right before", async (t) => {
  const guessed = await startTestDoor();
  t.after(() => guessed.stop());
  const head = `HTTP/1.1\r\nHost: ${guessed.host}\r\nConnection: close\r\n`;
  const ask = (password: string): Promise<string> =>
    sendRaw(
      guessed.port,
      `PROPFIND /dav/ ${head}Depth: 0\r\nAuthorization: ${basic({ username: "alice@example.com", password })}\r\n\r\n`,
    );
  assert.equal(status(await ask("right password")), "207");
  const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => ask(`guess ${index}`)));
  assert.ok(answers.map(status).filter((code) => code === "401").length >= 30);
  assert.equal(status(await ask("another guess")), "429");
  assert.ok(guessed.asked.filter((password) => password.startsWith("guess")).length <= 46);
  assert.equal(status(await ask("right password")), "207");
  const log = guessed.lines.join("\n");
  assert.match(log, /"refused"/u);
  for (const secret of ["right password", "guess 0", basic().slice(6), "Authorization"]) {
    assert.ok(!log.includes(secret), secret);
  }
});

test("letters outside of ASCII that are not percent-encoded name nothing, and the answer says what to do", async () => {
  await ask("PUT /dav/source", [SIGNED_IN, "Content-Length: 2"], "me");
  // Bytes of UTF-8, each of which Node reads as one letter.
  const raw = Buffer.from("/dav/caf\u00e9").toString("latin1");
  for (const [line, header] of [
    ["MOVE /dav/source", `Destination: ${raw}`],
    ["COPY /dav/source", `Destination: http://${door.host}${raw}`],
    ["DELETE /dav/source", `If: <${raw}> (Not <DAV:no-lock>)`],
    [`DELETE ${raw}`, "Depth: infinity"],
  ] as const) {
    const answer = await ask(line, [SIGNED_IN, header]);
    assert.equal(status(answer), "400", line);
    if (!line.includes(raw)) assert.match(answer, /percent-encode/u);
  }
  const moved = await ask("MOVE /dav/source", [SIGNED_IN, "Destination: /dav/caf%C3%A9"]);
  assert.equal(status(moved), "201", "it was still there");
});
