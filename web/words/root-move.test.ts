// Tests of the words about moves, and about a node that is taken out of service.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DrainView, RootMoveView } from "#wire/webapi/root-move.ts";
import { drainText, isLostThere, moveText } from "./root-move.ts";

const EMPTY: DrainView = {
  node_id: "n1",
  node_name: "fs-pi4",
  driven: false,
  roots_left: 0,
  under_way: 0,
  kept_copies: 0,
  removing_copies: 0,
  to_engine: false,
  remove_command: "",
  problem: null,
};

test("a node is called empty once its copies have gone, and not before", () => {
  assert.match(drainText(EMPTY), /^fs-pi4 is empty and gets no roots\. Stop it/);
  assert.match(
    drainText({ ...EMPTY, kept_copies: 2, removing_copies: 1 }),
    /keeps copies of 2 roots\. Look at/,
  );
  assert.match(
    drainText({ ...EMPTY, removing_copies: 1 }),
    /^fs-pi4 has no roots left, and still removes its copies of 1 root\. Once it has, stop it/,
  );
});

const MOVE: RootMoveView = {
  owner: "alice@example.com",
  from: "n1",
  from_name: "fs-pi4",
  to: "",
  to_name: "",
  state: "frozen",
  percent: null,
  remaining_seconds: null,
  copied_bytes: 0,
  total_bytes: null,
  problem: "n2 must list their roots first",
  started_at: 0,
  changed_at: 0,
};

test("a move that the metadata store has lost says what its root waits for, and names no other node", () => {
  assert.equal(moveText(MOVE), "is frozen: n2 must list their roots first");
  assert.equal(moveText({ ...MOVE, state: "undone", problem: null }), "undone");
});

test("a root that its new node has lost is not there to be confirmed: its text says how the copy is served again", () => {
  const switched: RootMoveView = { ...MOVE, to: "n2", to_name: "fs-x86", state: "switched", problem: null };
  assert.ok(!isLostThere(switched));
  assert.match(moveText(switched), /^lives on fs-x86; fs-pi4 keeps its copy until you confirm$/);
  const lost = { ...switched, problem: "the root is not here" };
  assert.ok(isLostThere(lost));
  assert.match(
    moveText(lost),
    /^fs-x86 does not have it; fs-pi4 keeps its copy, .*grove root move alice@example\.com -take_back/,
  );
});
