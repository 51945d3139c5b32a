// Tests the reading of XML bodies and its limits.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isGroveError } from "#base/errors.ts";
import { XML_MAX_DEPTH, XML_MAX_ELEMENTS, XML_NAMESPACE_MAX_LENGTH } from "#base/limits.ts";
import { textOf } from "#wire/xml/xml-element.ts";
import { readLockInfo, readPropfind, readProppatch } from "./request-bodies.ts";
import { readXml, XML_MAX_BYTES } from "./xml-body.ts";
import { escapedXml, xmlOf } from "./xml-text.ts";

const bytes = (text: string): Buffer => Buffer.from(text);

test("what is written reads back as it was", () => {
  const text =
    '<a:x xmlns:a="urn:a" xmlns="urn:d" k="1 &amp; 2"><y a:z="&quot;"/>text &lt;b&gt;<a:w xmlns:a="urn:other"/></a:x>';
  const element = readXml(bytes(text));
  assert.deepEqual(readXml(bytes(xmlOf(element))), element);
  const again =
    '<a xmlns="urn:a"><b xmlns=""><c xmlns="urn:a"><d/><e xmlns=""/></c></b><f xmlns:p="urn:p" p:k=""/></a>';
  assert.equal(xmlOf(readXml(bytes(again))), again);
});

test("any text survives, but for characters that no document may hold", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const read = textOf(readXml(bytes(`<a>${escapedXml(text)}</a>`)));
      assert.equal(
        read,
        text.toWellFormed().replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd"),
      );
    }),
  );
});

test("document types, foreign entities, depth and length are refused", () => {
  assert.equal(readXml(bytes(`<a>${"<b/>".repeat(XML_MAX_ELEMENTS - 1)}</a>`)).name, "a");
  const deep = "<a>".repeat(XML_MAX_DEPTH + 1) + "</a>".repeat(XML_MAX_DEPTH + 1);
  const refused = [
    '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
    "<a>&b;</a>",
    "<a>",
    "",
    "<a/><b/>",
    '<x:a xmlns:x=""/>',
    "<x:a/>",
    deep,
    `<a>${"<b/>".repeat(XML_MAX_ELEMENTS)}</a>`,
    `<a>${" ".repeat(XML_MAX_BYTES)}</a>`,
    `<a xmlns="${"u".repeat(XML_NAMESPACE_MAX_LENGTH + 1)}"/>`,
    `<a xmlns:p="${"u".repeat(XML_NAMESPACE_MAX_LENGTH + 1)}"/>`,
  ];
  const longest = "u".repeat(XML_NAMESPACE_MAX_LENGTH);
  assert.equal(readXml(bytes(`<a xmlns="${longest}"/>`)).namespace, longest);
  for (const text of refused) {
    assert.throws(
      () => readXml(bytes(text)),
      (error) => isGroveError(error, "BAD_ARGUMENT"),
      text.slice(0, 60),
    );
  }
  assert.throws(() => readXml(Buffer.from([0x3c, 0x61, 0x3e, 0xff, 0x3c, 0x2f, 0x61, 0x3e])));
});

test("a PROPFIND names what it wants", () => {
  const find = (inner: string): unknown =>
    readPropfind(bytes(`<D:propfind xmlns:D="DAV:">${inner}</D:propfind>`));
  assert.deepEqual(readPropfind(bytes("")), { kind: "all", include: [] });
  assert.deepEqual(find("<D:propname/>"), { kind: "names" });
  assert.deepEqual(find('<D:prop><x xmlns="urn:x"/><y xmlns=""/></D:prop>'), {
    kind: "some",
    properties: [
      { namespace: "urn:x", name: "x" },
      { namespace: "", name: "y" },
    ],
  });
  assert.throws(() => find(""));
  assert.throws(() => find("<D:propname/><D:allprop/>"));
  assert.throws(() => find(`<D:prop>${"<D:a/>".repeat(201)}</D:prop>`), /at most 200/u);
});

test("a PROPPATCH keeps the order of its steps, and languages stay", () => {
  const changes = readProppatch(
    bytes(
      '<D:propertyupdate xmlns:D="DAV:" xml:lang="de"><D:set><D:prop><a xmlns="urn:x">1</a></D:prop></D:set>' +
        '<D:remove><D:prop><a xmlns="urn:x"/></D:prop></D:remove></D:propertyupdate>',
    ),
  );
  assert.deepEqual(
    changes.map((change) => (change.kind === "set" ? change.property.xml : `remove ${change.name}`)),
    ['<a xmlns="urn:x" xml:lang="de">1</a>', "remove a"],
  );
});

test("a body whose namespaces and languages make it many times longer is refused", () => {
  const refused = (read: () => unknown): void =>
    assert.throws(read, (error) => isGroveError(error, "BAD_ARGUMENT") && /too long/u.test(error.message));
  const patch = (inner: string, more = ""): unknown =>
    readProppatch(
      bytes(
        `<D:propertyupdate xmlns:D="DAV:"${more}><D:set><D:prop>${inner}</D:prop></D:set></D:propertyupdate>`,
      ),
    );
  const namespace = ` xmlns:p="${"u".repeat(XML_NAMESPACE_MAX_LENGTH)}"`;
  // Nothing of the first element's needs its namespace: each one in it says it again.
  const inside = (count: number): string => `<a${namespace}>${"<p:b/>".repeat(count)}</a>`;
  patch(inside(400));
  refused(() => patch(inside(1_900)));
  // Several that would fit one by one.
  refused(() => patch(inside(400).repeat(2)));
  refused(() => patch("<a/>".repeat(200), ` xml:lang="${"x".repeat(10_000)}"`));
  const lock = "<D:lockscope><D:shared/></D:lockscope><D:locktype><D:write/></D:locktype>";
  const lockInfo = (owner: string): unknown =>
    readLockInfo(bytes(`<D:lockinfo xmlns:D="DAV:">${lock}<D:owner>${owner}</D:owner></D:lockinfo>`));
  lockInfo(inside(400));
  refused(() => lockInfo(inside(1_900)));
});
