// Tests the one reader of XML that people's programs send: the same bounds for bodies and for what is kept of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { XML_MAX_DEPTH, XML_MAX_ELEMENTS, XML_NAMESPACE_MAX_LENGTH } from "#base/limits.ts";
import { readElement } from "./xml-element.ts";

const KINDS = [
  { what: "a body", isPart: false },
  { what: "a property", isPart: true },
];

test("bodies and parts of documents are read within the same bounds, each at both of its sides", () => {
  const nested = (levels: number): string => "<a>".repeat(levels) + "</a>".repeat(levels);
  const beside = (elements: number): string => `<a>${"<b/>".repeat(elements - 1)}</a>`;
  const named = (length: number): string => `<a xmlns:p="${"u".repeat(length)}"/>`;
  for (const kind of KINDS) {
    for (const [make, most] of [
      [nested, XML_MAX_DEPTH],
      [beside, XML_MAX_ELEMENTS],
      [named, XML_NAMESPACE_MAX_LENGTH],
    ] as const) {
      assert.equal(readElement(make(most), kind).name, "a");
      assert.throws(
        () => readElement(make(most + 1), kind),
        (error) =>
          isGroveError(error, "BAD_ARGUMENT") && error.message.startsWith(`${kind.what} has at most`),
      );
    }
  }
});

test("what is put into other documents has no declaration and no instructions, and nothing has a document type", () => {
  for (const xml of ['<?xml version="1.0"?><a/>', "<a><?b c?></a>"]) {
    const [body, part] = KINDS.map((kind) => () => readElement(xml, kind));
    assert.doesNotThrow(body ?? assert.fail);
    assert.throws(part ?? assert.fail, (error) => isGroveError(error, "BAD_ARGUMENT"), xml);
  }
  for (const xml of ["<!DOCTYPE a><a/>", "<a/><b/>", "<a>", "<p:a/>", "<a>&b;</a>", ""]) {
    for (const kind of KINDS)
      assert.throws(
        () => readElement(xml, kind),
        (error) => isGroveError(error, "BAD_ARGUMENT"),
        xml,
      );
  }
});
