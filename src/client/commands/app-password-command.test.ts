// Tests the address that is told with an app password.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf } from "./app-password-command.ts";

test("the address that is told with a password for a folder is that folder's", () => {
  const door = "https://files.example.net/dav/";
  assert.equal(addressOf(door, "/"), door);
  assert.equal(addressOf(door, "/films/a b#ä%"), `${door}films/a%20b%23%C3%A4%25/`);
  assert.equal(addressOf("https://files.example.net/dav", "/films"), `${door}films/`);
  assert.equal(addressOf("", "/films"), "");
});
