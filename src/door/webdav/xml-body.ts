// Reads small XML bodies of requests: bounded in bytes, in UTF-8 or UTF-16.
import { GroveError } from "#base/errors.ts";
import { elementsOf, readElement, type XmlElement } from "#wire/xml/xml-element.ts";

/** Bytes of an XML body. */
export const XML_MAX_BYTES = 65_536;

/** The root element of a document. Throws BAD_ARGUMENT where it is not well-formed, too large or has a document type. */
export function readXml(bytes: Uint8Array): XmlElement {
  if (bytes.length > XML_MAX_BYTES) throw bad(`an XML body has at most ${XML_MAX_BYTES} bytes`);
  return readElement(decoded(bytes), { what: "an XML body", isPart: false });
}

/** The first element of that name in the namespace "DAV:". */
export function davChild(element: XmlElement, name: string): XmlElement | undefined {
  return elementsOf(element).find((child) => child.namespace === "DAV:" && child.name === name);
}

function decoded(bytes: Uint8Array): string {
  const isUtf16 = (bytes[0] === 0xfe && bytes[1] === 0xff) || (bytes[0] === 0xff && bytes[1] === 0xfe);
  const label = isUtf16 ? (bytes[0] === 0xfe ? "utf-16be" : "utf-16le") : "utf-8";
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes);
  } catch {
    throw bad("an XML body is UTF-8 or UTF-16");
  }
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
