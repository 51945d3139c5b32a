// Addresses that one machine can choose freely count as one place (D17).
import assert from "node:assert/strict";
import { test } from "node:test";
import { networkOf, widerNetworkOf } from "./network.ts";

test("an IPv4 address is a place of its own, in both of its forms", () => {
  assert.equal(networkOf("192.0.2.7"), "192.0.2.7");
  assert.equal(networkOf("::ffff:192.0.2.7"), "192.0.2.7");
  assert.equal(networkOf("::FFFF:c000:207"), "192.0.2.7");
  assert.notEqual(networkOf("192.0.2.7"), networkOf("192.0.2.8"));
});

test("all addresses of one /64 are one place, however they are written; the next /64 is another", () => {
  const place = "2001:db8:0:7::/64";
  const forms = [
    "2001:db8:0:7::1",
    "2001:DB8:0000:7:ffff:ffff:ffff:ffff",
    "2001:db8::7:1:2:3:4",
    "2001:db8:0:7::%eth0",
  ];
  for (const address of forms) assert.equal(networkOf(address), place, address);
  assert.notEqual(networkOf("2001:db8:0:8::1"), place);
  assert.equal(networkOf("::1"), "0:0:0:0::/64");
  assert.equal(networkOf("fe80::1%lo"), "fe80:0:0:0::/64");
  assert.equal(networkOf("1::"), "1:0:0:0::/64");
});

test("what is no address stands for itself", () => {
  for (const text of ["", "n1", "a:b", "::g", "1:2:3"]) assert.equal(networkOf(text), text);
});

test("the wider network of an address is its /24 or its /48", () => {
  assert.equal(widerNetworkOf("192.0.2.7"), "192.0.2.0/24");
  assert.equal(widerNetworkOf("::ffff:192.0.2.250"), "192.0.2.0/24");
  assert.notEqual(widerNetworkOf("192.0.3.7"), widerNetworkOf("192.0.2.7"));
  assert.equal(widerNetworkOf("2001:db8:7:1::1"), "2001:db8:7::/48");
  assert.equal(widerNetworkOf("2001:db8:7:ffff:1:2:3:4"), "2001:db8:7::/48");
  assert.notEqual(widerNetworkOf("2001:db8:8::1"), widerNetworkOf("2001:db8:7::1"));
  for (const text of ["", "n1", "a:b", "1.2.3"]) assert.equal(widerNetworkOf(text), text);
});
