// Allowed ids and addresses of nodes, at both sides of each limit.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroveError } from "./errors.ts";
import { checkedFileServerAddress, checkedNodeId, formatHostPort, parseHostPort } from "./node-id.ts";

const isBadArgument = (error: unknown): boolean => isGroveError(error, "BAD_ARGUMENT");

test("no node is called cluster: interfaces mean all of them by it, and the refusal says what to do (spec 4.1)", () => {
  assert.throws(() => checkedNodeId("cluster"), {
    code: "BAD_ARGUMENT",
    message: /"cluster", which stands for all.*another with -id/,
  });
  for (const id of ["cluster-1", "clusters", "a-cluster"]) assert.equal(checkedNodeId(id), id);
});

test("a node id is one DNS label (D20)", () => {
  for (const id of ["a", "node-1", "0", "x".repeat(63)]) assert.equal(checkedNodeId(id), id);
  for (const id of ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a\n", "../a", "x".repeat(64)]) {
    assert.throws(() => checkedNodeId(id), isBadArgument, id);
  }
});

test("host:port is split and written back, IPv6 in brackets", () => {
  assert.deepEqual(parseHostPort("[::1]:50051"), { host: "::1", port: 50051 });
  for (const text of ["127.0.0.1:1", "grove.example.com:65535", "[2001:db8::1]:50051"]) {
    assert.equal(formatHostPort(parseHostPort(text)), text);
  }
  assert.equal(parseHostPort("a:0", { allowZero: true }).port, 0);
  for (const text of [
    "",
    "a",
    "a:",
    ":1",
    "a:0",
    "a:65536",
    "a b:1",
    "::1:5",
    "a:1/x",
    "-a:1",
    "u@a:1",
    "a:1\n",
  ]) {
    assert.throws(() => parseHostPort(text), isBadArgument, text);
  }
});

test("a FileServer's port leaves room for its metrics port (T6)", () => {
  assert.equal(checkedFileServerAddress("a:41001"), "a:41001");
  assert.throws(() => checkedFileServerAddress("a:41000"), isBadArgument);
});
