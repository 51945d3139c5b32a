// Reads small XML bodies: bounded in bytes and depth, with namespaces, without document types or entities of their own.
import { SaxesParser } from "saxes";
import { GroveError } from "#base/errors.ts";

/** Bytes of an XML body. */
export const XML_MAX_BYTES = 65_536;

/** Elements in one another. */
export const XML_MAX_DEPTH = 32;

/** Elements of a body: more take longer to read than others should wait. */
export const XML_MAX_ELEMENTS = 2_000;

/** One element with its resolved namespace. */
export interface XmlElement {
  readonly namespace: string;
  readonly name: string;
  readonly prefix: string;
  readonly attributes: readonly XmlAttribute[];
  readonly children: readonly (XmlElement | string)[];
  /** Value of xml:lang that holds here; undefined for none. */
  readonly language: string | undefined;
}

/** An attribute that declares no namespace. */
export interface XmlAttribute {
  readonly namespace: string;
  readonly prefix: string;
  readonly name: string;
  readonly value: string;
}

interface OpenElement extends XmlElement {
  readonly children: (XmlElement | string)[];
}

const XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace";
const XMLNS_NAMESPACE = "http://www.w3.org/2000/xmlns/";

/** The root element of a document. Throws BAD_ARGUMENT where it is not well-formed, too large or has a document type. */
export function readXml(bytes: Uint8Array): XmlElement {
  if (bytes.length > XML_MAX_BYTES) throw bad(`an XML body has at most ${XML_MAX_BYTES} bytes`);
  const text = decoded(bytes);
  const parser = new SaxesParser({ xmlns: true });
  const open: OpenElement[] = [];
  let root: XmlElement | undefined;
  let elements = 0;
  parser.on("error", (error) => {
    throw bad(`the body is not well-formed XML: ${error.message.slice(0, 200)}`);
  });
  parser.on("doctype", () => {
    throw bad("an XML body cannot have a document type");
  });
  parser.on("opentag", (tag) => {
    if (open.length >= XML_MAX_DEPTH) throw bad(`an XML body has at most ${XML_MAX_DEPTH} levels`);
    if (++elements > XML_MAX_ELEMENTS) throw bad(`an XML body has at most ${XML_MAX_ELEMENTS} elements`);
    const attributes = Object.values(tag.attributes)
      .filter(({ uri }) => uri !== XMLNS_NAMESPACE)
      .map(({ uri, prefix, local, value }) => ({ namespace: uri, prefix, name: local, value }));
    const own = attributes.find(({ namespace, name }) => namespace === XML_NAMESPACE && name === "lang");
    const element: OpenElement = {
      namespace: tag.uri,
      name: tag.local,
      prefix: tag.prefix,
      attributes,
      children: [],
      language: own?.value ?? open.at(-1)?.language,
    };
    open.at(-1)?.children.push(element);
    root ??= element;
    open.push(element);
  });
  parser.on("closetag", () => open.pop());
  parser.on("text", (value) => open.at(-1)?.children.push(value));
  parser.on("cdata", (value) => open.at(-1)?.children.push(value));
  parser.write(text).close();
  if (root === undefined) throw bad("the body has no XML element");
  return root;
}

/** Elements directly in an element. */
export function elementsOf(element: XmlElement): XmlElement[] {
  return element.children.filter((child) => typeof child !== "string");
}

/** The first element of that name in the namespace "DAV:". */
export function davChild(element: XmlElement, name: string): XmlElement | undefined {
  return elementsOf(element).find((child) => child.namespace === "DAV:" && child.name === name);
}

/** An element's own text, without that of elements in it. */
export function textOf(element: XmlElement): string {
  return element.children.filter((child) => typeof child === "string").join("");
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
