// Tests how the If header is read and judged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { IF_RESOURCES_MAX, type IfState, ifHolds, readIf, submittedTokens } from "./if-header.ts";

const STATES: Readonly<Record<string, IfState>> = {
  "": { etag: "v1", tokens: ["urn:uuid:a"] },
  "/dav/b": { etag: "v2", tokens: ["urn:uuid:b"] },
};

const holds = (header: string): Promise<boolean> =>
  ifHolds(readIf(header), (resource) =>
    Promise.resolve(STATES[resource ?? ""] ?? { etag: undefined, tokens: [] }),
  );

test("a list holds where all its conditions do, and one list is enough", async () => {
  assert.equal(await holds("(<urn:uuid:a>)"), true);
  assert.equal(await holds('(<urn:uuid:a> ["v1"])'), true);
  assert.equal(await holds('(<urn:uuid:a> [W/"v1"])'), true);
  assert.equal(await holds('(<urn:uuid:a> ["v2"])'), false);
  assert.equal(await holds('(<urn:uuid:x>) (["v1"])'), true);
  assert.equal(await holds("(Not <urn:uuid:a>)"), false);
  assert.equal(await holds("(<urn:uuid:x>) (not <DAV:no-lock>)"), true);
});

test("a tagged list speaks of its own resource, and so do those behind it", async () => {
  assert.equal(await holds('</dav/b> (<urn:uuid:b> ["v2"])'), true);
  assert.equal(await holds("</dav/b> (<urn:uuid:a>) (<urn:uuid:b>)"), true);
  assert.equal(await holds("</dav/c> (<urn:uuid:b>)"), false);
});

test("each token is submitted once, those of other resources included", () => {
  const lists = readIf('</a> (<urn:uuid:a> ["x"]) </b> (Not <urn:uuid:b>) (<urn:uuid:a>)');
  assert.deepEqual(submittedTokens(lists), ["urn:uuid:a", "urn:uuid:b"]);
});

test("a header that is not as the RFC has it is refused", () => {
  for (const header of [
    "",
    " ",
    "()",
    "(",
    "(<a>",
    "<a>",
    "<a> <b> (<c>)",
    "(<a>) <b> (<c>)",
    "x",
    '(["a)',
    "(a)",
  ]) {
    assert.throws(
      () => readIf(header),
      (error) => isGroveError(error, "BAD_ARGUMENT"),
      header,
    );
  }
  assert.throws(() => readIf(`(${"<a>".repeat(3000)})`), /more than 8192 bytes/u);
});

test("a header speaks of 16 resources at most, since each is looked at", () => {
  const of = (count: number): string =>
    Array.from({ length: count }, (_, at) => `</dav/${at}> (<t>) (["e"])`).join(" ");
  assert.equal(readIf(of(IF_RESOURCES_MAX)).length, 2 * IF_RESOURCES_MAX);
  assert.throws(() => readIf(of(IF_RESOURCES_MAX + 1)), /more than 16 resources/u);
  assert.equal(readIf("</a> (<t>) ".repeat(100)).length, 100);
});

test("reading takes linear time", () => {
  const worst = `(${"<".repeat(4000)}${"Not ".repeat(1000)}`;
  for (let round = 0; round < 200; round++) assert.throws(() => readIf(worst));
});
