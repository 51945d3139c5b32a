// Tests from where a session is said to have begun where a proxy stands before the door.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { sendRaw, startTestDoor } from "#door/http/door.fixture.ts";
import { OwnHosts } from "#door/http/own-hosts.ts";
import { KnownSessions } from "./known-sessions.ts";
import { BrowserSignIn } from "./sign-in.ts";

const PUBLIC = "https://files.example.net";
const FORM = "email=alice%40example.com";

test("behind a named proxy a session has the person's address, whatever the person has put before it", async (t) => {
  const told: unknown[] = [];
  const hosts = new OwnHosts(PUBLIC, { host: "127.0.0.1", port: 1 }, false);
  const keeper = {
    openSession: async (_idToken: string, { address, userAgent }: { address: string; userAgent: string }) => {
      told.push(["opened", address, userAgent]);
      return { secret: "gds_new", username: "alice@example.com", endsMs: systemClock.wallMs() + 60_000 };
    },
    endSession: async (secret: string, _everywhere: boolean, address: string) => {
      told.push(["ended", address, secret]);
    },
  };
  const signIn = new BrowserSignIn({
    flow: undefined,
    mock: true,
    hosts,
    keeper,
    sessions: new KnownSessions(systemClock),
    clock: systemClock,
    log: silentLogger,
  });
  const door = await startTestDoor({ proxies: ["127.0.0.1"], publicUrl: PUBLIC, pages: signIn });
  t.after(() => door.stop());
  const ask = (path: string, body: string): Promise<string> => {
    const headers = [
      "Host: files.example.net",
      `Origin: ${PUBLIC}`,
      "X-Forwarded-For: 198.51.100.1, 203.0.113.9",
      "X-Forwarded-Proto: https",
      "User-Agent: Mine",
      "Cookie: __Host-grove-door-session=gds_old",
      `Content-Length: ${body.length}`,
      "Connection: close",
    ];
    return sendRaw(door.port, `POST ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n${body}`);
  };
  assert.match(await ask("/sign-in", FORM), /^HTTP\/1\.1 303 /u);
  assert.match(await ask("/sign-out", ""), /^HTTP\/1\.1 204 /u);
  assert.deepEqual(told, [
    ["opened", "203.0.113.9", "Mine"],
    ["ended", "203.0.113.9", "gds_old"],
    ["ended", "203.0.113.9", "gds_old"],
  ]);
});
