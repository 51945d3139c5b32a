// Which addresses may belong to nodes, and which never do (M-04).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ALLOWED_NETWORKS_MAX, NodeNetworks } from "./node-networks.ts";

const NEVER = [
  "0.0.0.0",
  "0.1.2.3",
  "169.254.169.254",
  "169.254.0.1",
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "fe80::1",
  "fe80::1%eth0",
  "febf::1",
  "fec0::1",
  "ff02::1",
  "fd00:ec2::254",
  "64:ff9b::7f00:1",
  "2002:7f00:1::",
  "2001::1",
  "::ffff:169.254.169.254",
  "::ffff:a9fe:a9fe",
  "::ffff:0:0",
  "node.example",
  "2130706433",
  "0x7f.1",
  "",
];
const LOOPBACK = [
  "127.0.0.1",
  "127.255.255.254",
  "::1",
  "0:0:0:0:0:0:0:1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
];
const ORDINARY = [
  "10.0.0.1",
  "192.168.1.9",
  "172.16.0.1",
  "203.0.113.7",
  "fd12::1",
  "2a01:4f8::1",
  "100.64.0.1",
];

test("without blocks every ordinary address may be a node's, loopback and the rest may not (M-04)", () => {
  const networks = new NodeNetworks();
  for (const ip of ORDINARY) assert.equal(networks.problemOf(ip), undefined, ip);
  for (const ip of [...NEVER, ...LOOPBACK]) assert.notEqual(networks.problemOf(ip), undefined, ip);
});

test("no block allows what is never a node's; the largest ones do not allow loopback (M-04)", () => {
  const networks = new NodeNetworks(["0.0.0.0/0", "::/0", "169.254.0.0/16", "169.254.169.254", "fe80::/10"]);
  for (const ip of ORDINARY) assert.equal(networks.problemOf(ip), undefined, ip);
  for (const ip of [...NEVER, ...LOOPBACK]) assert.notEqual(networks.problemOf(ip), undefined, ip);
});

test("loopback is allowed by a block that lies in it, and then only there (M-04)", () => {
  const networks = new NodeNetworks(["127.0.0.0/8", "::1/128"]);
  for (const ip of LOOPBACK) assert.equal(networks.problemOf(ip), undefined, ip);
  for (const ip of [...NEVER, ...ORDINARY]) assert.notEqual(networks.problemOf(ip), undefined, ip);
  const one = new NodeNetworks(["127.0.0.1"]);
  assert.equal(one.problemOf("127.0.0.1"), undefined);
  assert.match(one.problemOf("127.0.0.2") ?? "", /-allow_nodes/);
});

test("a block of the same family holds what its first bits say, and nothing beside it", () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.integer({ min: 1, max: 32 }), fc.ipV4(), (network, bits, ip) => {
      const number = (text: string): number =>
        text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
      const unit = 2 ** (32 - bits);
      const isInside = Math.floor(number(network) / unit) === Math.floor(number(ip) / unit);
      const anywhere = new NodeNetworks().problemOf(ip);
      fc.pre(anywhere === undefined);
      assert.equal(new NodeNetworks([`${network}/${bits}`]).problemOf(ip) === undefined, isInside);
    }),
  );
});

test("what is no block is refused at the start", () => {
  for (const text of [
    "",
    "10.0.0.0/33",
    "::/129",
    "10.0.0.0/-1",
    "10.0.0.0/8/8",
    "10.0.0",
    "node/8",
    "10.0.0.0/",
    "fe80::1%e/64",
  ]) {
    assert.throws(() => new NodeNetworks([text]), { code: "BAD_ARGUMENT" }, text);
  }
  const many = Array.from({ length: ALLOWED_NETWORKS_MAX }, (_, index) => `10.0.${index}.0/24`);
  assert.doesNotThrow(() => new NodeNetworks(many));
  assert.throws(() => new NodeNetworks([...many, "10.1.0.0/24"]), { code: "BAD_ARGUMENT" });
});
