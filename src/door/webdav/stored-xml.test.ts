// Stored XML of others: an answer around it stays one answer, whatever it holds.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { elementsOf } from "#wire/xml/xml-element.ts";
import { storedOwner, storedProperty } from "./stored-xml.ts";
import { readXml } from "./xml-body.ts";
import { XmlRoom, xmlOf } from "./xml-text.ts";

const BAD = [
  "</a></p><evil/><p><a>",
  "<a></p></a>",
  "<a/><b/>",
  "<a",
  "&foreign;",
  '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
  "]]>",
  "<a>".repeat(33),
  "\u0000",
];

test("a stored property is told only where it is one element of its own name", () => {
  const good = { namespace: "urn:x", name: "a", xml: '<a xmlns="urn:x" k="1 &amp; 2">t<b/></a>' };
  assert.deepEqual(storedProperty(good)?.xml, good.xml);
  assert.equal(
    storedProperty({ ...good, xml: `<?xml version="1.0"?><!-- c -->${good.xml}` })?.xml,
    good.xml,
    "what may stand at a document's start alone is gone",
  );
  for (const xml of BAD) assert.equal(storedProperty({ ...good, xml }), undefined, xml);
  assert.equal(storedProperty({ ...good, name: "b" }), undefined);
  assert.equal(storedProperty({ ...good, namespace: "DAV:" }), undefined);
});

test("what an answer has no room for is not told, and what it has room for is", () => {
  const namespace = "u".repeat(1_000);
  const xml = `<a xmlns="urn:x" xmlns:p="${namespace}">${"<p:b/>".repeat(300)}</a>`;
  const long = { namespace: "urn:x", name: "a", xml };
  const room = new XmlRoom();
  assert.ok(storedProperty(long, room) !== undefined);
  assert.equal(storedProperty(long, room), undefined);
  const alone = { ...long, xml: xml.replace("</a>", `${"<p:b/>".repeat(300)}</a>`) };
  assert.equal(storedProperty(alone), undefined);
});

test("what a lock's holder said of itself stays inside the element around it", () => {
  assert.equal(storedOwner("bob"), "bob");
  assert.equal(storedOwner("bob & co"), "bob &amp; co");
  const href = '<D:href xmlns:D="DAV:">mailto:a@b</D:href>';
  assert.equal(storedOwner(href), href);
  assert.equal(storedOwner("</owner><evil/><owner>"), "&lt;/owner&gt;&lt;evil/&gt;&lt;owner&gt;");
  const isWithin = (note: string): void => {
    const around = readXml(Buffer.from(`<p><o>${storedOwner(note)}</o></p>`));
    assert.deepEqual(
      elementsOf(around).map(({ name }) => name),
      ["o"],
      xmlOf(around),
    );
  };
  for (const note of BAD) isWithin(note);
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("<", ">", "/", "&", ";", "!", "-", "[", "]", "a", "o", '"', " ")),
      (letters) => isWithin(letters.join("")),
    ),
  );
});
