// Tests which networks are proposed for the console, also where a machine's own name is a loopback address.
import assert from "node:assert/strict";
import type { NetworkInterfaceInfo } from "node:os";
import { test } from "node:test";
import { networksOf, remarkOnLoopback } from "./networks.ts";

const at = (address: string, length: number, family: "IPv4" | "IPv6" = "IPv4"): NetworkInterfaceInfo => {
  const common = { address, netmask: "", mac: "", internal: false, cidr: `${address}/${length}` };
  return family === "IPv4" ? { ...common, family } : { ...common, family, scopeid: 0 };
};
const INTERFACES = {
  lo: [{ ...at("127.0.0.1", 8), internal: true }],
  eth0: [at("192.168.7.4", 24), at("fe80::4", 64, "IPv6"), at("2001:db8::4", 64, "IPv6")],
  wlan0: [at("10.1.2.3", 20), at("169.254.3.4", 16)],
};

test("a name with an address of this machine gives that network, and a foreign one none", () => {
  assert.equal(networksOf(["192.168.7.4"], INTERFACES), "192.168.7.0/24");
  assert.equal(networksOf(["192.168.7.4", "2001:db8::4"], INTERFACES), "192.168.7.0/24,2001:db8::4/64");
  assert.equal(networksOf(["198.51.100.7"], INTERFACES), undefined);
});

test("where Debian gives the machine's own name a loopback address, the nodes' networks and that address are proposed", () => {
  assert.equal(networksOf(["127.0.1.1"], INTERFACES), "192.168.7.0/24,10.1.2.3/20,127.0.1.1");
  assert.equal(networksOf(["127.0.1.1", "192.168.7.4"], INTERFACES), "192.168.7.0/24,10.1.2.3/20,127.0.1.1");
  assert.equal(networksOf(["127.0.1.1"], { lo: INTERFACES.lo }), undefined);
});

test("networks without such an address are taken with a remark that says what to do", () => {
  const [remark = "", ...more] = remarkOnLoopback("n1.example.net", ["127.0.1.1"], ["10.0.0.0/8"]);
  assert.deepEqual(more, []);
  assert.match(
    remark,
    /^n1\.example\.net is 127\.0\.1\.1 on this machine .*: add 127\.0\.1\.1 to the networks, or /,
  );
  assert.deepEqual(remarkOnLoopback("n1", ["127.0.1.1"], ["10.0.0.0/8", "127.0.1.1"]), []);
  assert.deepEqual(remarkOnLoopback("n1", ["127.0.1.1"], ["127.0.0.0/8"]), []);
  assert.deepEqual(remarkOnLoopback("n1", ["10.0.0.7"], ["10.0.0.0/8"]), []);
});
