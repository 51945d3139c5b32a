// Tests operators' sign-in by name: who is an operator, what the browser must bring back, names in the log.
import assert from "node:assert/strict";
import { readFile, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "#base/clock.ts";
import { systemRandom } from "#base/random.ts";
import { CALLBACK_PATH, openOperatorPeople, type PeopleRule } from "#console/operators/operator-people.ts";
import { OPERATOR_LIST_CHECK_INTERVAL_MS } from "#console/operators/removed-operators.ts";
import { auditFiles } from "#security/audit/audit-files.ts";
import { pkceChallenge } from "#security/identity/pkce.ts";
import {
  answerAsIssuer,
  json,
  makeKey,
  signToken,
  startProvider,
} from "#security/identity/provider.fixture.ts";
import { readIdentitySettings } from "#security/identity/sign-in-variables.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { Answer } from "./app.fixture.ts";
import { type ConsoleUnderTest, startTestConsole, tokenOf } from "./console.fixture.ts";

const CLIENT_ID = "the-console";
const key = makeKey("ES256", "k");

interface Bench {
  readonly console: ConsoleUnderTest;
  readonly list: string;
  /** Additional claims of the next token. */
  claims: Record<string, unknown>;
  /** Goes to the provider and back, as a browser does. */
  goThere(): Promise<{ readonly cookie: string; readonly back: string }>;
  comeBack(way: { readonly cookie: string; readonly back: string }): Promise<Answer>;
}

/** A console with a rule for operators; the list of subjects is in a file of the test. */
async function bench(t: TestContext, rule?: PeopleRule): Promise<Bench> {
  const provider = await startProvider();
  t.after(() => provider.stop());
  answerAsIssuer(provider, key);
  provider.answers.set(
    "/.well-known/openid-configuration",
    json({
      issuer: provider.origin,
      authorization_endpoint: `${provider.origin}/auth`,
      token_endpoint: `${provider.origin}/token`,
      jwks_uri: `${provider.origin}/jwks`,
      id_token_signing_alg_values_supported: [key.alg],
    }),
  );
  /** Parameters of the consent address, by code. */
  const grants = new Map<string, URLSearchParams>();
  provider.answers.set("/token", (request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => {
      body += piece;
    });
    request.on("end", () => {
      const form = new URLSearchParams(body);
      const grant = grants.get(form.get("code") ?? "");
      grants.delete(form.get("code") ?? "");
      if (
        grant === undefined ||
        pkceChallenge(form.get("code_verifier") ?? "") !== grant.get("code_challenge")
      ) {
        json({ error: "invalid_grant" }, 400)(request, response);
        return;
      }
      const nowS = Math.floor(Date.now() / 1_000);
      const good = { iss: provider.origin, aud: CLIENT_ID, sub: "s-alice", iat: nowS, exp: nowS + 600 };
      const person = { email: "Alice@Example.com", email_verified: true, nonce: grant.get("nonce") };
      const idToken = signToken(key, { ...good, ...person, ...made.claims });
      json({ access_token: "a", token_type: "Bearer", id_token: idToken })(request, response);
    });
  });
  const folder = scratchFolder("console-people-");
  const list = join(folder, "operators");
  await writeFile(list, "# who may\ns-alice  # Alice\n", { mode: 0o600 });
  const env = {
    IDP_ISSUER: provider.origin,
    IDP_CLIENT_ID: CLIENT_ID,
    IDP_REDIRECT_URI: `https://console.example${CALLBACK_PATH}`,
  };
  const people = await openOperatorPeople({
    settings: readIdentitySettings(env),
    idpCa: undefined,
    rule: rule ?? { file: list },
    clock: systemClock,
    random: systemRandom,
  });
  const console = await startTestConsole(t, { people });
  const made: Bench = {
    console,
    list,
    claims: {},
    async goThere() {
      const answer = await console.ask("/api/auth/idp");
      assert.equal(answer.status, 302, answer.text);
      const consent = new URL(answer.headers.location ?? "");
      assert.equal(consent.origin, provider.origin);
      const code = `code-${systemRandom.bytes(8).toString("hex")}`;
      grants.set(code, consent.searchParams);
      const cookie = (answer.headers["set-cookie"]?.[0] ?? "").split(";", 1)[0] ?? "";
      const state = consent.searchParams.get("state") ?? "";
      return { cookie, back: `${CALLBACK_PATH}?code=${code}&state=${state}` };
    },
    comeBack: ({ cookie, back }) => console.ask(back, { headers: { cookie } }),
  };
  return made;
}

/** The session token that an answer sets; other cookies are ignored. */
function sessionOf(answer: Answer): string {
  const cookies = answer.headers["set-cookie"] ?? [];
  const own = cookies.filter((cookie) => cookie.startsWith("svc_admin_token="));
  return tokenOf({ ...answer, headers: { ...answer.headers, "set-cookie": own } });
}

async function refusedAs(answer: Answer, why: string): Promise<void> {
  assert.deepEqual([answer.status, answer.headers.location], [302, `/sign-in?refused=${why}`]);
  assert.equal(sessionOf(answer), "");
}

test("an operator of the list signs in, and sessions and audit log name the person", async (t) => {
  const made = await bench(t);
  const answer = await made.comeBack(await made.goThere());
  assert.deepEqual([answer.status, answer.headers.location], [302, "/"]);
  const token = sessionOf(answer);
  const listed = await made.console.ask("/api/auth/sessions", {
    headers: { authorization: `Bearer ${token}` },
  });
  const { sessions } = listed.json as { sessions: { id: string; is_own: boolean }[] };
  assert.match(sessions[0]?.id ?? "", /^alice@example\.com\/[0-9a-f]{8}$/);
  const logged = async (): Promise<string> => {
    const files = await auditFiles(join(made.console.dataFolder, "audit"));
    return (await Promise.all(files.map(({ path }) => readFile(path, "utf8")))).join("");
  };
  const deadline = performance.now() + 20_000;
  while (!(await logged()).includes("alice@example.com/") && performance.now() < deadline) await sleep(20);
  assert.match(await logged(), /"alice@example\.com\/[0-9a-f]{8}"/);
  assert.equal((await made.console.ask("/api/auth/status")).text.includes('"identity_provider":true'), true);
});

test("whoever is taken off the list is signed out within seconds, and nobody else is; a list that stays away lets nobody stay", async (t) => {
  const made = await bench(t);
  const { console } = made;
  const signIn = async (sub: string): Promise<string> => {
    made.claims = { sub, email: `${sub}@example.com` };
    return sessionOf(await made.comeBack(await made.goThere()));
  };
  await writeFile(made.list, "s-alice\ns-bob\n");
  const byPassword = await console.signIn();
  const [alice, bob] = [await signIn("s-alice"), await signIn("s-bob")];
  const isIn = async (token: string): Promise<boolean> =>
    (await console.ask("/api/auth/sessions", { headers: { authorization: `Bearer ${token}` } })).status ===
    200;
  const untilOut = async (token: string): Promise<void> => {
    const deadline = performance.now() + 4 * OPERATOR_LIST_CHECK_INTERVAL_MS;
    while (await isIn(token)) {
      assert.ok(performance.now() < deadline, "still signed in");
      await sleep(100);
    }
  };
  assert.deepEqual([await isIn(alice), await isIn(bob)], [true, true]);
  await writeFile(made.list, "s-bob\n");
  await untilOut(alice);
  assert.deepEqual([await isIn(byPassword), await isIn(bob)], [true, true]);
  await unlink(made.list);
  await untilOut(bob);
  assert.equal(await isIn(byPassword), true);
});

test("whoever is not on the list, or no longer, is none; the list is held against the subject and not the address", async (t) => {
  const made = await bench(t);
  made.claims = { sub: "s-eve" };
  await refusedAs(await made.comeBack(await made.goThere()), "not_operator");
  made.claims = { sub: "alice@example.com" };
  await refusedAs(await made.comeBack(await made.goThere()), "not_operator");
  made.claims = {};
  await writeFile(made.list, "s-bob\n");
  await refusedAs(await made.comeBack(await made.goThere()), "not_operator");
});

test("a claim makes operators: the text itself, or one in a list, and nothing like it", async (t) => {
  const made = await bench(t, { claim: "groups", value: "grove-admins" });
  for (const [groups, isOperator] of [
    ["grove-admins", true],
    [["staff", "grove-admins"], true],
    [["grove-admins2"], false],
    ["staff grove-admins", false],
    [[["grove-admins"]], false],
    [undefined, false],
  ] as const) {
    made.claims = { groups };
    const answer = await made.comeBack(await made.goThere());
    assert.equal(sessionOf(answer) !== "", isOperator, JSON.stringify(groups));
  }
});

test("what comes back must be of the browser that went, once, with its state and nonce", async (t) => {
  const made = await bench(t);
  const first = await made.goThere();
  const second = await made.goThere();
  await refusedAs(await made.comeBack({ cookie: "", back: first.back }), "failed");
  await refusedAs(await made.comeBack({ cookie: second.cookie, back: first.back }), "failed");
  await refusedAs(await made.comeBack({ cookie: `${first.cookie}x`, back: first.back }), "failed");
  assert.notEqual(sessionOf(await made.comeBack(first)), "");
  await refusedAs(await made.comeBack(first), "failed");
  made.claims = { nonce: "another" };
  await refusedAs(await made.comeBack(await made.goThere()), "failed");
});

test("ten minutes later it is too late", async (t) => {
  const made = await bench(t);
  const way = await made.goThere();
  made.console.moveTime(10 * 60_000);
  await refusedAs(await made.comeBack(way), "failed");
});

test("refused ones are counted like wrong passwords, and the password stays", async (t) => {
  const made = await bench(t);
  made.claims = { sub: "s-eve" };
  let answer: Answer;
  let attempts = 0;
  do answer = await made.comeBack(await made.goThere());
  while (answer.headers.location === "/sign-in?refused=not_operator" && ++attempts < 50);
  assert.equal(answer.headers.location, "/sign-in?refused=limited");
  const other = await bench(t);
  assert.match(await other.console.signIn(), /^[0-9a-f]{64}$/);
});

test("without a rule there is no way in by name, and nothing says that there could be", async (t) => {
  const console = await startTestConsole(t);
  assert.equal((await console.ask("/api/auth/idp")).status, 404);
  assert.equal((await console.ask("/api/auth/status")).text.includes("identity_provider"), false);
});
