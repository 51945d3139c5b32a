// Tests of the subject registry on a real disk: first sign-in, another person, restarts, damage.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { makeVerifiedIdentity, type VerifiedIdentity } from "#base/verified-identity.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { SubjectRegistry } from "./subject-registry.ts";

let folder = "";
let made = 0;
before(async () => {
  folder = scratchFolder("identity-book-");
});
const newPath = (): string => join(folder, `book-${made++}.json`);

function person(username: string, subject: string, issuer = "https://idp.example"): VerifiedIdentity {
  return makeVerifiedIdentity({ username, issuer, subject });
}

const isOtherPerson = (error: unknown): boolean =>
  isGroveError(error, "TOKEN_REJECTED") && error.metadata["claim"] === "sub";

test("an address stays with the first subject that had it, also after a restart (D21)", async () => {
  const path = newPath();
  for (const registry of [await SubjectRegistry.open(path), await SubjectRegistry.open(path)]) {
    await registry.admit(person("a@x", "1"));
    await registry.admit(person("b@x", "2"));
    await assert.rejects(registry.admit(person("a@x", "2")), isOtherPerson);
    await assert.rejects(registry.admit(person("a@x", "1", "https://other.example")), isOtherPerson);
    await assert.rejects(registry.admit(person("a@x", "", "")), isOtherPerson);
  }
  const reopened = await SubjectRegistry.open(path);
  await assert.rejects(reopened.admit(person("b@x", "1")), isOtherPerson);
  await reopened.admit(person("b@x", "2", "idp.example")); // Google names itself with and without https://
  await reopened.forget("b@x");
  await (await SubjectRegistry.open(path)).admit(person("b@x", "3"));
});

test("an identity without a subject passes and is not written down", async () => {
  const path = newPath();
  const registry = await SubjectRegistry.open(path);
  await registry.admit(person("mock@x", "", ""));
  await registry.admit(person("mock@x", "7"));
  await assert.rejects(registry.admit(person("mock@x", "8")), isOtherPerson);
});

test("a hundred at once are all on the disk when they have been let in, in a few writes (A-10)", async () => {
  const path = newPath();
  const registry = await SubjectRegistry.open(path);
  await Promise.all(
    Array.from({ length: 100 }, async (_, at) => {
      await registry.admit(person(`user${at}@x`, `${at}`));
      const text = await readFile(path, "utf8");
      assert.ok(text.includes(`"user${at}@x"`));
    }),
  );
  const reopened = await SubjectRegistry.open(path);
  await Promise.all(Array.from({ length: 100 }, (_, at) => reopened.admit(person(`user${at}@x`, `${at}`))));
  await assert.rejects(reopened.admit(person("user5@x", "6")), isOtherPerson);
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.endsWith(".tmp")),
    [],
  );
});

test("two that come at once with one address: one is let in, the other is not", async () => {
  const registry = await SubjectRegistry.open(newPath());
  const outcomes = await Promise.allSettled(
    ["1", "2"].map((subject) => registry.admit(person("a@x", subject))),
  );
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected"],
  );
});

test("a sign-in whose note cannot be saved is refused and forgotten", async () => {
  const path = join(folder, "gone", "book.json");
  await assert.rejects(SubjectRegistry.open(path));
  const kept = newPath();
  const registry = await SubjectRegistry.open(kept);
  await rm(folder, { recursive: true });
  await assert.rejects(registry.admit(person("a@x", "1")));
  folder = scratchFolder("identity-book-");
});

const NEW = "https://new.example";
const nowhere = (): boolean => false;

test("an operator's word on an address that the registry does not know counts where its files are, and nowhere else (D21)", async () => {
  const path = newPath();
  const registry = await SubjectRegistry.open(path);
  const word = { username: "here@x", issuer: NEW, subject: "9", version: 5n };
  const words = [word, { ...word, username: "elsewhere@x" }];
  const isHere = (username: string): boolean => username === "here@x";
  assert.deepEqual(await registry.rebind(words, isHere), ["here@x"]);
  assert.deepEqual(await registry.rebind(words, isHere), [], "it is heard once");
  const opened = await SubjectRegistry.open(path);
  await assert.rejects(opened.admit(person("here@x", "1", NEW)), isOtherPerson);
  await opened.admit(person("here@x", "9", NEW));
  assert.equal(opened.find("here@x")?.version, 5n);
  assert.equal(opened.find("elsewhere@x"), undefined);
});

test("an operator's word counts by its version, over restarts too (D21)", async () => {
  const path = newPath();
  const registry = await SubjectRegistry.open(path);
  await registry.admit(person("a@x", "1"));
  const word = { username: "a@x", issuer: NEW, subject: "9", version: 5n };
  assert.deepEqual(await registry.rebind([word, { ...word, username: "not-here@x" }], nowhere), ["a@x"]);
  for (const opened of [registry, await SubjectRegistry.open(path)]) {
    await opened.admit(person("a@x", "9", NEW));
    await assert.rejects(opened.admit(person("a@x", "1")), isOtherPerson);
    for (const version of [4n, 5n]) {
      assert.deepEqual(
        await opened.rebind([{ ...word, issuer: "https://idp.example", subject: "1", version }], nowhere),
        [],
      );
    }
    assert.deepEqual(opened.find("a@x"), { issuer: NEW, subject: "9", version: 5n });
    assert.equal(opened.find("not-here@x"), undefined);
  }
});

test("an address that waits for a provider's word takes the first who comes from there, and nobody else", async () => {
  const registry = await SubjectRegistry.open(newPath());
  await registry.admit(person("a@x", "1"));
  await registry.rebind([{ username: "a@x", issuer: NEW, subject: "", version: 2n }], nowhere);
  for (const other of [person("a@x", "1"), person("a@x", "", NEW), person("a@x", "")]) {
    assert.equal(registry.isAwaited(other), false);
    await assert.rejects(registry.admit(other), isOtherPerson);
  }
  assert.equal(registry.isAwaited(person("a@x", "7", NEW)), true);
  await registry.admit(person("a@x", "7", NEW));
  assert.equal(registry.isAwaited(person("a@x", "8", NEW)), false);
  await assert.rejects(registry.admit(person("a@x", "8", NEW)), isOtherPerson);
});

test("after damage the operator's word is heard once more, and not taken for heard", async () => {
  const path = newPath();
  const registry = await SubjectRegistry.open(path);
  await registry.admit(person("a@x", "1"));
  const word = { username: "a@x", issuer: NEW, subject: "9", version: 5n };
  await registry.rebind([word], nowhere);
  await writeFile(path, "{");
  const before = await SubjectRegistry.open(path);
  assert.equal(before.find("a@x")?.version, 0n);
  assert.deepEqual(await before.rebind([word], nowhere), ["a@x"]);
  await writeFile(path.replace(".json", "-versions.json"), "{");
  assert.deepEqual((await SubjectRegistry.open(path)).find("a@x"), {
    issuer: NEW,
    subject: "9",
    version: 0n,
  });
});

test("a damaged file gives way to the generation before, and without one nothing starts (A-10)", async () => {
  const path = newPath();
  const registry = await SubjectRegistry.open(path);
  await registry.admit(person("a@x", "1"));
  await registry.admit(person("b@x", "2"));
  const whole = await readFile(path, "utf8");
  for (const damage of [
    ...Array.from({ length: whole.length }, (_, at) => whole.slice(0, at)),
    "null",
    "[]",
    "{}",
    '{"schema":1}',
    "\0".repeat(50),
    "[".repeat(5_000),
    '{"schema":1,"subjects":[["a@x","i"]]}',
    '{"schema":1,"subjects":[["a@x","i",1]]}',
  ]) {
    await writeFile(path, damage);
    await assert.rejects(
      (await SubjectRegistry.open(path)).admit(person("a@x", "9")),
      isOtherPerson,
      damage.slice(0, 40),
    );
  }
  await rm(path);
  await assert.rejects((await SubjectRegistry.open(path)).admit(person("a@x", "9")), isOtherPerson);
  await writeFile(path, "{");
  await writeFile(`${path}.previous`, "{");
  await assert.rejects(SubjectRegistry.open(path), (error) => isGroveError(error, "CORRUPT"));
  await writeFile(path, '{"schema":2,"subjects":[]}');
  await assert.rejects(
    SubjectRegistry.open(path),
    (error) => isGroveError(error, "BAD_ARGUMENT") && /newer/.test(error.message),
  );
});

test("a damaged file does not become the generation before, so that a second damage loses no address (A-10)", async () => {
  const path = newPath();
  await (await SubjectRegistry.open(path)).admit(person("a@x", "1"));
  await (await SubjectRegistry.open(path)).admit(person("b@x", "2"));
  const aside = { clock: new ManualClock(), log: silentLogger };
  for (const subject of ["3", "4"]) {
    await writeFile(path, "{");
    await (await SubjectRegistry.open(path, aside)).admit(person(`c${subject}@x`, subject));
  }
  await writeFile(path, "{");
  await assert.rejects((await SubjectRegistry.open(path, aside)).admit(person("a@x", "9")), isOtherPerson);
});

test("an operator's word that could not be written down is heard when it is said again, and is not forgotten (D21)", async () => {
  const inner = join(folder, "gone");
  await mkdir(inner);
  const registry = await SubjectRegistry.open(join(inner, "book.json"));
  await registry.admit(person("a@x", "1"));
  await rm(inner, { recursive: true });
  const word = { username: "a@x", issuer: "https://new.example", subject: "9", version: 5n };
  await assert.rejects(
    registry.rebind([word, { ...word, username: "b@x" }], (username) => username === "b@x"),
  );
  assert.equal(registry.find("b@x"), undefined);
  await registry.admit(person("a@x", "1"));
  await mkdir(inner);
  assert.deepEqual(await registry.rebind([word], nowhere), ["a@x"]);
  await registry.forget("a@x");
  await assert.rejects(registry.admit(person("a@x", "1")), isOtherPerson);
});
