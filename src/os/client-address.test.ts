// The client's address with and without trusted proxies (C-04).
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import fc from "fast-check";
import { isGroveError } from "#base/errors.ts";
import { type ClientFacts, clientFacts, TrustedProxies } from "./client-address.ts";

function facts(
  peer: string,
  headers: Record<string, string> = {},
  places: readonly string[] = [],
  encrypted = false,
): ClientFacts {
  const request = { socket: { remoteAddress: peer, encrypted }, headers } as unknown as IncomingMessage;
  return clientFacts(request, new TrustedProxies(places));
}

test("without trusted proxies nothing that a request says of its address counts", () => {
  assert.equal(facts("203.0.113.9", { "x-forwarded-for": "127.0.0.1" }).address, "203.0.113.9");
  assert.equal(facts("::ffff:203.0.113.9").address, "203.0.113.9");
  assert.equal(facts("fe80::1%eth0").address, "fe80::1");
  assert.equal(facts("203.0.113.9", { "x-forwarded-proto": "https" }).isSecure, false);
  assert.equal(facts("203.0.113.9", {}, [], true).isSecure, true);
});

test("this machine is this machine, unless somebody has handed the request on (T10)", () => {
  for (const peer of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
    assert.equal(facts(peer).isLoopback, true, peer);
  for (const header of ["x-forwarded-for", "forwarded", "x-real-ip", "via"]) {
    assert.equal(facts("127.0.0.1", { [header]: "127.0.0.1" }).isLoopback, false, header);
  }
  for (const peer of ["203.0.113.9", "::", "128.0.0.1", "::2"])
    assert.equal(facts(peer).isLoopback, false, peer);
  assert.equal(
    facts("127.0.0.1", {}, ["127.0.0.1"]).isLoopback,
    false,
    "a proxy that says nothing is no client",
  );
  assert.equal(facts("10.0.0.1", { "x-forwarded-for": "127.0.0.1" }, ["10.0.0.1"]).isLoopback, true);
});

test("behind trusted proxies the right-most hop that is not one of them counts, whatever stands to its left", () => {
  const octet = fc.integer({ min: 0, max: 255 });
  const proxy = fc.tuple(octet, octet).map(([a, b]) => `10.0.${a}.${b}`);
  const client = fc.tuple(octet, octet, octet).map(([a, b, c]) => `203.${a}.${b}.${c}`);
  const lies = fc.array(fc.oneof(client, proxy, fc.constantFrom("127.0.0.1", "unknown", "", "::1", "_x")));
  fc.assert(
    fc.property(lies, client, fc.array(proxy, { maxLength: 5 }), proxy, (left, real, right, peer) => {
      const header = [...left, real, ...right].join(", ");
      assert.equal(facts(peer, { "x-forwarded-for": header }, ["10.0.0.0/16"]).address, real);
    }),
  );
});

test("a hop that is no address ends the search at the hop before it", () => {
  const places = ["10.0.0.0/16", "fd00::/8"];
  assert.equal(
    facts("10.0.0.1", { "x-forwarded-for": "203.0.113.9, garbage, 10.0.0.2" }, places).address,
    "10.0.0.2",
  );
  assert.equal(facts("10.0.0.1", { "x-forwarded-for": "garbage" }, places).address, "10.0.0.1");
  assert.equal(facts("10.0.0.1", {}, places).address, "10.0.0.1");
  assert.equal(
    facts("fd00::5", { "x-forwarded-for": "[2001:db8::7]:4711, fd00::9" }, places).address,
    "2001:db8::7",
  );
  assert.equal(facts("10.0.0.1", { "x-forwarded-for": "203.0.113.9:4711" }, places).address, "203.0.113.9");
});

test("a trusted proxy is taken to speak TLS outside unless it says otherwise (D2)", () => {
  assert.equal(facts("10.0.0.1", {}, ["10.0.0.1"]).isSecure, true);
  assert.equal(facts("10.0.0.1", { "x-forwarded-proto": "https" }, ["10.0.0.1"]).isSecure, true);
  assert.equal(facts("10.0.0.1", { "x-forwarded-proto": "https, HTTP" }, ["10.0.0.1"]).isSecure, false);
});

test("a trusted proxy that is no address and no network stops the start", () => {
  for (const place of [
    "",
    "proxy.example.net",
    "10.0.0.0/33",
    "10.0.0.0/8/8",
    "fd00::/129",
    "10.0.0.0/-1",
    "10.0.0.0/",
  ]) {
    assert.throws(
      () => new TrustedProxies([place]),
      (error) => isGroveError(error, "BAD_ARGUMENT"),
      place,
    );
  }
});
