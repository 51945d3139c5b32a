// Reads XML of people's programs: bounded in levels, elements and namespaces, without document types or entities.
import { SaxesParser } from "saxes";
import { GroveError } from "#base/errors.ts";
import { XML_MAX_DEPTH, XML_MAX_ELEMENTS, XML_NAMESPACE_MAX_LENGTH } from "#base/limits.ts";

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

/** What is read. */
export interface XmlKind {
  /** In a refusal: "an XML body". */
  readonly what: string;
  /** True for what is put into other documents: it has neither a declaration nor instructions. */
  readonly isPart: boolean;
}

/** The root element. Throws BAD_ARGUMENT where it is not well-formed, too large or has a document type. */
export function readElement(text: string, { what, isPart }: XmlKind): XmlElement {
  const refuse = (why: string): never => {
    throw new GroveError("BAD_ARGUMENT", `${what} ${why}`);
  };
  const parser = new SaxesParser({ xmlns: true });
  const open: OpenElement[] = [];
  let root: XmlElement | undefined;
  let elements = 0;
  parser.on("error", ({ message }) => refuse(`is not well-formed XML: ${message.slice(0, 200)}`));
  parser.on("doctype", () => refuse("cannot have a document type"));
  if (isPart) {
    parser.on("xmldecl", () => refuse("cannot have a declaration"));
    parser.on("processinginstruction", () => refuse("cannot have processing instructions"));
  }
  parser.on("opentag", (tag) => {
    // Each level is looked through for the names of those below it.
    if (open.length >= XML_MAX_DEPTH) refuse(`has at most ${XML_MAX_DEPTH} levels`);
    if (++elements > XML_MAX_ELEMENTS) refuse(`has at most ${XML_MAX_ELEMENTS} elements`);
    if (Object.values(tag.ns).some((uri) => uri.length > XML_NAMESPACE_MAX_LENGTH))
      refuse(`has at most ${XML_NAMESPACE_MAX_LENGTH} characters in a namespace`);
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
  return root ?? refuse("has no element");
}

/** Elements directly in an element. */
export function elementsOf(element: XmlElement): XmlElement[] {
  return element.children.filter((child) => typeof child !== "string");
}

/** An element's own text, without that of elements in it. */
export function textOf(element: XmlElement): string {
  return element.children.filter((child) => typeof child === "string").join("");
}
