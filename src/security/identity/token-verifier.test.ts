// Tests of verification at the tokeninfo address: mock mode, caches, and a provider that hangs, lies and
// breaks off.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ManualClock } from "#base/clock.ts";
import { type ErrorCode, type GroveError, isGroveError } from "#base/errors.ts";
import type { SecurityEventFacts } from "#base/security-event.ts";
import { type Answer, json, startProvider, type TestProvider, text } from "./provider.fixture.ts";
import { IDP_RESPONSE_MAX_BYTES } from "./provider-fetch.ts";
import { createTokenVerifier, type TokenVerifier, type TokenVerifierDeps } from "./token-verifier.ts";

const CLIENT_ID = "client-1";
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let provider: TestProvider;
let clock: ManualClock;
let events: SecurityEventFacts[];
beforeEach(async () => {
  provider = await startProvider();
  clock = new ManualClock();
  events = [];
});
afterEach(() => provider.stop());

function verifier(overrides: Partial<TokenVerifierDeps> = {}): TokenVerifier {
  return createTokenVerifier({
    clientId: CLIENT_ID,
    tokeninfoUrl: `${provider.origin}/tokeninfo`,
    mock: false,
    clock,
    onSecurityEvent: (event) => events.push(event),
    ...overrides,
  });
}

function claims(overrides: object = {}): object {
  const nowSeconds = Math.floor(clock.wallMs() / 1000);
  return {
    aud: CLIENT_ID,
    email: "Alice@Example.com",
    email_verified: "true",
    exp: String(nowSeconds + 3_600),
    sub: "1",
    ...overrides,
  };
}

function answer(how: Answer): void {
  provider.answers.set("/tokeninfo", how);
}

async function refused(promise: Promise<unknown>, code: ErrorCode, claim?: string): Promise<GroveError> {
  let caught: unknown;
  await promise.then(
    () => assert.fail("was accepted"),
    (error: unknown) => {
      caught = error;
    },
  );
  assert.ok(isGroveError(caught, code), String(caught));
  if (claim !== undefined) assert.equal(caught.metadata["claim"], claim);
  return caught;
}

test("a token that the provider vouches for is an identity, lower-cased, until its exp (spec 5.2)", async () => {
  answer(json(claims({ iss: "https://idp.example" })));
  const { identity, expiresAtWallMs } = await verifier().verify("a.b.c");
  assert.deepEqual(
    { ...identity },
    { username: "alice@example.com", issuer: "https://idp.example", subject: "1" },
  );
  assert.equal(expiresAtWallMs, clock.wallMs() + HOUR_MS);
  assert.deepEqual(provider.requests, ["/tokeninfo?id_token=a.b.c"]);
});

test("a query that the tokeninfo address already has is kept, and the token is escaped", async () => {
  answer(json(claims()));
  await verifier({ tokeninfoUrl: `${provider.origin}/tokeninfo?v=3` }).verify("a&aud=b#c");
  assert.deepEqual(provider.requests, ["/tokeninfo?v=3&id_token=a%26aud%3Db%23c"]);
});

test("without a client id and without mock mode nothing is asked (spec 5.2.2)", async () => {
  answer(json(claims()));
  for (const clientId of [undefined, ""]) {
    await refused(verifier({ clientId }).verify("a.b.c"), "CLIENT_ID_UNSET");
    await refused(verifier({ clientId, issuer: provider.origin }).verify("a.b.c"), "CLIENT_ID_UNSET");
  }
  await refused(verifier({ useIdpAuth: false }).verify("a.b.c"), "TOKEN_REJECTED");
  assert.deepEqual(provider.requests, []);
});

test("outside mock mode every form of a mock token is refused before anything is asked, with a fatal event (spec 5.7, C-06)", async () => {
  answer(json(claims()));
  const forms = [
    "mock-jwt.a@x.de",
    "mock-jwt.",
    "MOCK-JWT.a@x.de",
    "Mock-Jwt.eyJ9",
    " mock-jwt.a@x.de",
    "\tmock-jwt.x",
    "mock-jwt.eyJlbWFpbCI6ImFAeC5kZSJ9",
    `mock-jwt.${"a".repeat(100_000)}`,
  ];
  for (const token of forms) {
    const error = await refused(verifier().verify(token, "10.0.0.9"), "MOCK_TOKEN");
    assert.ok(!error.message.includes(token.trim()));
    await refused(verifier({ clientId: undefined }).verify(token), "MOCK_TOKEN");
  }
  assert.deepEqual(provider.requests, []);
  assert.equal(events.length, 2 * forms.length);
  assert.deepEqual(events[0], { type: "mock_token", fatal: true, ipSeen: "10.0.0.9" });
  assert.deepEqual(events[1], { type: "mock_token", fatal: true });
});

test("a real token in mock mode still goes to the provider", async () => {
  answer(json(claims()));
  assert.equal((await verifier({ mock: true }).verify("a.b.c")).identity.username, "alice@example.com");
  await refused(verifier({ mock: true, clientId: undefined }).verify("a.b.c"), "CLIENT_ID_UNSET");
});

test("a verified token is asked for once, until its exp (spec 5.2.4, C-11)", async () => {
  answer(json(claims()));
  const caching = verifier();
  await caching.verify("a.b.c");
  clock.advance(HOUR_MS - 1);
  await caching.verify("a.b.c");
  assert.equal(provider.requests.length, 1);
  clock.advance(1);
  await caching.verify("a.b.c"); // within the 60 s for clocks that differ, but no longer from the cache
  assert.equal(provider.requests.length, 2);
});

test("a token that lives longer is asked for again after 2 hours, however the wall jumps (spec 5.2.4, C-01)", async () => {
  answer(json(claims({ exp: Math.floor(clock.wallMs() / 1000) + 86_400 })));
  const caching = verifier();
  await caching.verify("a.b.c");
  clock.jumpWall(-10 * HOUR_MS);
  clock.advance(2 * HOUR_MS - 1);
  await caching.verify("a.b.c");
  assert.equal(provider.requests.length, 1);
  clock.advance(1);
  await caching.verify("a.b.c");
  assert.equal(provider.requests.length, 2);
  clock.jumpWall(40 * HOUR_MS);
  await refused(caching.verify("a.b.c"), "TOKEN_REJECTED", "exp");
});

test("a refusal is remembered for 30 seconds, an outage never (D21, C-10)", async () => {
  const caching = verifier();
  answer(json({ error: "invalid_token" }, 400));
  await refused(caching.verify("bad"), "TOKEN_REJECTED");
  clock.advance(29_999);
  await refused(caching.verify("bad"), "TOKEN_REJECTED");
  assert.equal(provider.requests.length, 1);
  clock.advance(1);
  await refused(caching.verify("bad"), "TOKEN_REJECTED");
  assert.equal(provider.requests.length, 2);
  answer(json({}, 503));
  for (let at = 0; at < 3; at++) await refused(caching.verify("good"), "IDP_UNAVAILABLE");
  assert.equal(provider.requests.length, 5);
  answer(json(claims()));
  await caching.verify("good");
});

test("what was verified before an outage stays verified (C-10)", async () => {
  answer(json(claims()));
  const caching = verifier();
  await caching.verify("a.b.c");
  answer((request) => request.socket.destroy());
  await caching.verify("a.b.c");
  await refused(caching.verify("d.e.f"), "IDP_UNAVAILABLE");
});

test("one request is under way for one token, however many ask (D21)", async () => {
  let release = (): void => {};
  answer((request, response) => {
    release = () => json(claims())(request, response);
  });
  const caching = verifier();
  const all = Array.from({ length: 50 }, () => caching.verify("a.b.c"));
  while (provider.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  release();
  assert.equal(new Set((await Promise.all(all)).map(({ identity }) => identity)).size, 1);
  assert.equal(provider.requests.length, 1);
});

const HOSTILE: Record<string, Answer> = {
  "a connection that is reset": (request) => request.socket.resetAndDestroy(),
  "an answer that breaks off": (request, response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "500" }).write('{"aud"');
    setTimeout(() => request.socket.destroy(), 20);
  },
  "status 500": json({ error: "oops" }, 500),
  "status 503 with claims": (request, response) => json(claims(), 503)(request, response),
  "status 429": json({ error: "slow down" }, 429),
  "status 404": json({}, 404),
  "a redirect": (_request, response) => {
    response.writeHead(302, { location: `${provider.origin}/honest` }).end();
  },
  "a permanent redirect": (_request, response) => {
    response.writeHead(308, { location: "http://169.254.169.254/" }).end();
  },
  "a page": text("<html>sign in to the hotel's network</html>", "text/html"),
  "claims that say they are text": (request, response) =>
    text(JSON.stringify(claims()), "text/plain")(request, response),
  "broken JSON": text('{"aud":', "application/json"),
  "bytes that are no UTF-8": (_request, response) => {
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(Buffer.from([0x22, 0xff, 0xfe, 0x22]));
  },
  "a list": json([claims]),
  null: json(null),
  "a number": json(42),
  "a string": json("alice@example.com"),
  "an empty answer": text("", "application/json"),
  "more than 64 KiB": (request, response) =>
    json(claims({ pad: "x".repeat(IDP_RESPONSE_MAX_BYTES) }))(request, response),
  "an endless answer": (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => response.write("x".repeat(16_384)), 1);
    response.on("close", () => clearInterval(timer));
  },
};

for (const [what, how] of Object.entries(HOSTILE)) {
  test(`${what} from the provider is an outage and no verdict (C-10)`, { timeout: 30_000 }, async () => {
    answer(how);
    provider.answers.set("/honest", json(claims()));
    const error = await refused(verifier().verify("canary-token"), "IDP_UNAVAILABLE");
    const told = `${error.stack}${JSON.stringify(error.metadata)}${String(error.cause)}`;
    assert.ok(!told.includes("canary") && !told.includes(provider.origin), told);
    assert.deepEqual(provider.requests, ["/tokeninfo?id_token=canary-token"]);
  });
}

test("a provider that hangs, before or in its answer, is given up after 5 seconds (D21)", {
  timeout: 30_000,
}, async () => {
  for (const how of [
    () => {},
    ((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" }).write("{");
    }) satisfies Answer,
  ]) {
    answer(how);
    const asked = provider.requests.length;
    let isOver = false;
    const hanging = refused(verifier().verify("a.b.c"), "IDP_UNAVAILABLE").then((error) => {
      isOver = true;
      return error;
    });
    while (provider.requests.length === asked) await new Promise((resolve) => setTimeout(resolve, 5));
    clock.advance(4_999);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(isOver, false);
    clock.advance(1);
    assert.match((await hanging).message, /within 5 seconds/);
  }
});

test("an answer of exactly 64 KiB is read", async () => {
  const empty = JSON.stringify(claims({ pad: "" })).length;
  answer((request, response) =>
    json(claims({ pad: "x".repeat(IDP_RESPONSE_MAX_BYTES - empty) }))(request, response),
  );
  await verifier().verify("a.b.c");
  answer((request, response) =>
    json(claims({ pad: "x".repeat(IDP_RESPONSE_MAX_BYTES - empty + 1) }))(request, response),
  );
  await refused(verifier().verify("d.e.f"), "IDP_UNAVAILABLE");
});

test("a token that cannot be one is refused unread: empty, with blanks, over 16 KiB", async () => {
  answer(json(claims()));
  for (const token of ["", "a b", "a\nb", "ä.b.c", "a".repeat(16_385)]) {
    await refused(verifier().verify(token), "TOKEN_REJECTED");
  }
  assert.deepEqual(provider.requests, []);
  await verifier({ fetch: async () => Response.json(claims()) }).verify("a".repeat(16_384));
});

test("a provider that is not there, or not set up, is an outage (C-10)", async () => {
  await provider.stop();
  const error = await refused(verifier().verify("canary-token"), "IDP_UNAVAILABLE");
  assert.match(error.message, /ECONNREFUSED/);
  provider = await startProvider();
  await refused(verifier({ tokeninfoUrl: undefined }).verify("a.b.c"), "IDP_UNAVAILABLE");
  assert.throws(
    () => verifier({ tokeninfoUrl: "idp.example" }),
    (thrown) => isGroveError(thrown, "BAD_ARGUMENT"),
  );
});

interface CountingProvider {
  readonly caching: TokenVerifier;
  asked: number;
}

/** A verifier whose provider answers in this process, so that thousands of tokens are fast. */
function counting(claimsOf: (token: string) => object | undefined): CountingProvider {
  const counter: CountingProvider = {
    asked: 0,
    caching: verifier({
      fetch: async (url) => {
        counter.asked++;
        const found = claimsOf(new URL(url).searchParams.get("id_token") ?? "");
        return Response.json(found ?? {}, { status: found === undefined ? 400 : 200 });
      },
    }),
  };
  return counter;
}

test("5,000 tokens are remembered; one more pushes the least used out, and no other (spec 5.2.4, C-11)", {
  timeout: 30_000,
}, async () => {
  const counter = counting(() => claims());
  for (let at = 0; at < 5_000; at++) await counter.caching.verify(`t${at}`);
  await counter.caching.verify("t0");
  assert.equal(counter.asked, 5_000);
  await counter.caching.verify("one-more");
  for (let at = 2; at < 5_000; at++) await counter.caching.verify(`t${at}`);
  await counter.caching.verify("t0");
  assert.equal(counter.asked, 5_001);
  await counter.caching.verify("t1");
  assert.equal(counter.asked, 5_002);
});

test("in a full cache tokens that have run out go before live ones (spec 5.2.4)", {
  timeout: 30_000,
}, async () => {
  const nowSeconds = Math.floor(clock.wallMs() / 1000);
  const counter = counting((token) => claims({ exp: nowSeconds + (token === "short" ? 60 : 3_600) }));
  for (let at = 0; at < 4_999; at++) await counter.caching.verify(`t${at}`);
  await counter.caching.verify("short");
  clock.advance(MINUTE_MS);
  await counter.caching.verify("one-more");
  for (let at = 0; at < 4_999; at++) await counter.caching.verify(`t${at}`);
  assert.equal(counter.asked, 5_001);
});

test("refusals are remembered for 5,000 tokens at most, so that a flood of bad ones takes no memory (C-11)", {
  timeout: 30_000,
}, async () => {
  const counter = counting(() => undefined);
  const fail = (token: string): Promise<GroveError> =>
    refused(counter.caching.verify(token, `network of ${token}`), "TOKEN_REJECTED");
  for (let at = 0; at <= 5_000; at++) await fail(`t${at}`);
  await fail("t5000");
  await fail("t1");
  assert.equal(counter.asked, 5_001);
  await fail("t0");
  assert.equal(counter.asked, 5_002);
});

test("of a refusal what it says is remembered, and not the error with the stack of whoever asked first (C-11)", async () => {
  const counter = counting(() => undefined);
  const fail = (): Promise<GroveError> => refused(counter.caching.verify("bad"), "TOKEN_REJECTED");
  const said: [WeakRef<GroveError>, string, object][] = [];
  await fail().then((error) => said.push([new WeakRef(error), error.message, error.metadata]));
  const [[first, message, metadata] = assert.fail("nothing was said")] = said;
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // A WeakRef's target is kept until the next turn of the event loop.
  await nextTurn();
  collect();
  assert.equal(first.deref(), undefined);
  const again = await fail();
  assert.deepEqual([again.message, again.metadata], [message, metadata]);
  assert.equal(counter.asked, 1);
});
