// The versions that Rename, Copy and TrashFile expect are judged in the step that changes something (D13).
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { parts, refusal, startTestNode, type TestUser } from "./node.fixture.ts";

const REPLACE = OnConflict.REPLACE;
const LARGE = Buffer.alloc(70_000, "a file of chunks ");

/** A user with two files and a folder. */
async function withFiles(t: TestContext): Promise<TestUser> {
  const node = await startTestNode();
  t.after(() => node.stop());
  const ada = await node.signIn("ada@example.com");
  for (const name of ["a", "b"]) await ada.call.createFile({ path: `/${name}`, data: Buffer.from(name) });
  await ada.call.createDirectory({ path: "/d" });
  return ada;
}

const etagAt = async (user: TestUser, path: string): Promise<string> =>
  (await user.call.getAttr({ path })).etag;

const touch = (user: TestUser, path: string) => user.call.writeFile({ path, data: Buffer.from("other") });

const namesIn = async (user: TestUser): Promise<string[]> =>
  (await user.call.listDir({ path: "/" })).entries.map(({ name }) => name);

async function assertMismatch(call: Promise<unknown>): Promise<void> {
  assert.equal((await refusal(call)).reason, "ETAG_MISMATCH");
}

test("what has another version than the expected one is neither trashed, moved nor copied", async (t) => {
  const ada = await withFiles(t);
  for (const path of ["/a", "/d"]) {
    const ifMatch = await etagAt(ada, path);
    if (path === "/a") await touch(ada, path);
    else await ada.call.createFile({ path: "/d/new", data: Buffer.from("new") });
    await assertMismatch(ada.call.trashFile({ path, ifMatch }));
    await assertMismatch(ada.call.rename({ path, targetPath: "/c", ifMatch }));
    await assertMismatch(ada.call.rename({ path, targetPath: path, ifMatch }));
    await assertMismatch(ada.call.copy({ path, targetPath: "/c", ifMatch }));
    assert.deepEqual(await namesIn(ada), path === "/a" ? ["a", "b", "d"] : ["b", "d"]);
    const current = await etagAt(ada, path);
    await ada.call.copy({ path, targetPath: "/c", ifMatch: current });
    await ada.call.rename({ path, targetPath: `${path}2`, ifMatch: current });
    await ada.call.trashFile({ path: `${path}2`, ifMatch: await etagAt(ada, `${path}2`) });
    await ada.call.trashFile({ path: "/c" });
  }
  assert.deepEqual(await namesIn(ada), ["b"]);
});

test("what has another version than the expected one, or is gone, is not replaced", async (t) => {
  const ada = await withFiles(t);
  const targetIfMatch = await etagAt(ada, "/b");
  await touch(ada, "/b");
  const change = { path: "/a", targetPath: "/b", onConflict: REPLACE };
  await assertMismatch(ada.call.rename({ ...change, targetIfMatch }));
  await assertMismatch(ada.call.copy({ ...change, targetIfMatch }));
  await assertMismatch(ada.call.copy({ ...change, targetPath: "/none", targetIfMatch }));
  await assertMismatch(ada.call.rename({ ...change, targetPath: "/none", targetIfMatch }));
  assert.equal(String((await ada.call.readFile({ path: "/b" })).data), "other");
  await ada.call.copy({ ...change, targetIfMatch: await etagAt(ada, "/b") });
  await ada.call.rename({ ...change, targetIfMatch: await etagAt(ada, "/b") });
  assert.deepEqual(await namesIn(ada), ["b", "d"]);
});

test("of two moves of one version at the same time one alone goes through", async (t) => {
  const ada = await withFiles(t);
  await ada.upload(parts("/large", LARGE, 70_000));
  for (const path of ["/a", "/d", "/large"]) {
    const ifMatch = await etagAt(ada, path);
    const moves = ["/x", "/y"].map((targetPath) => ada.call.rename({ path, targetPath, ifMatch }));
    const outcomes = await Promise.allSettled(moves);
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1, path);
    for (const gone of ["/x", "/y"]) await ada.call.trashFile({ path: gone }).catch(() => undefined);
  }
  // The same group of the writer has a new entry of the folder and what expects the folder without it.
  await ada.call.createDirectory({ path: "/d" });
  const ifMatch = await etagAt(ada, "/d");
  const [, moved] = await Promise.allSettled([
    ada.call.createFile({ path: "/d/new", data: Buffer.from("new") }),
    ada.call.rename({ path: "/d", targetPath: "/e", ifMatch }),
  ]);
  assert.equal(moved.status, "rejected");
});
