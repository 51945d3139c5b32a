// Tests what is told of an app password: its address, and whether its folder has left its place.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { addressOf, hasFolderLeft } from "./app-password-command.ts";

test("the address that is told with a password for a folder is that folder's", () => {
  const door = "https://files.example.net/dav/";
  assert.equal(addressOf(door, "/"), door);
  assert.equal(addressOf(door, "/films/a b#ä%"), `${door}films/a%20b%23%C3%A4%25/`);
  assert.equal(addressOf("https://files.example.net/dav", "/films"), `${door}films/`);
  assert.equal(addressOf("", "/films"), "");
});

test("a password's folder has left when another or nothing has its path, and is not judged without an answer", async () => {
  const told = (answer: () => Promise<unknown>, folderId = "7"): Promise<boolean | null> =>
    hasFolderLeft({ runAt: answer } as unknown as Pick<Cluster, "runAt">, { folderId, folderPath: "/films" });
  const refused = (code: "NO_SUCH_PATH" | "NOT_DIRECTORY" | "STARTING") => (): Promise<unknown> =>
    Promise.reject(new GroveError(code, "no"));
  assert.equal(await told(async () => ({ id: "7" })), false);
  assert.equal(await told(async () => ({ id: "8" })), true);
  assert.equal(await told(refused("NO_SUCH_PATH")), true);
  assert.equal(await told(refused("NOT_DIRECTORY")), true);
  assert.equal(await told(refused("STARTING")), null);
  assert.equal(await told(refused("STARTING"), ""), null);
});
