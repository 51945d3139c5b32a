// Tests of canonical addresses: the same client on different sockets, and clients that stay distinct.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { normalizeAddress } from "./address.ts";

test("IPv4, mapped in either notation, is IPv4 (T22, C-04)", () => {
  for (const [written, is] of [
    [" 10.0.0.1 ", "10.0.0.1"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["::FFFF:a00:1", "10.0.0.1"],
    ["0:0:0:0:0:ffff:c0a8:02fe", "192.168.2.254"],
    ["[::ffff:255.1.2.3]", "255.1.2.3"],
    ["::ffff:10.0.0.1%eth0", "10.0.0.1"],
  ] as const) {
    assert.equal(normalizeAddress(written), is, written);
  }
});

test("every IPv4 address is itself when it is mapped (T22)", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      assert.equal(normalizeAddress(`::ffff:${address}`), address);
      assert.equal(normalizeAddress(address), address);
    }),
  );
});

test("IPv6 is lower-cased and compressed, without brackets and zone (T22)", () => {
  for (const [written, is] of [
    ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
    ["[::1]", "::1"],
    ["fe80::1%eth0", "fe80::1"],
    ["fe80::1%eth0\n", "fe80::1"],
    ["::10.0.0.1", "::a00:1"],
    ["::fffe:a00:1", "::fffe:a00:1"],
    ["1::ffff:a00:1", "1::ffff:a00:1"],
  ] as const) {
    assert.equal(normalizeAddress(written), is, written);
  }
});

test("what is no address only equals itself (T22)", () => {
  assert.equal(normalizeAddress(" Host "), "host");
  assert.equal(normalizeAddress("A:b"), "a:b");
  assert.equal(normalizeAddress("[host]%1"), "[host]%1");
  assert.equal(normalizeAddress("::ffff:999.0.0.1"), "::ffff:999.0.0.1");
  assert.equal(normalizeAddress("1:2:3"), "1:2:3");
});
