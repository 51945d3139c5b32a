// Writes XML: escaped text, and elements with the namespaces that they need.
import { GroveError } from "#base/errors.ts";
import type { XmlElement } from "#wire/xml/xml-element.ts";

const ESCAPED: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\r": "&#13;",
};

// Characters that no XML 1.0 document may hold, not even escaped.
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/** Nothing that is written in another way: nearly all names and values. */
const PLAIN = /^[ !#-%'-;=?-~]*$/;

/** Text as XML: nothing of it can begin markup. */
export function escapedXml(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(NOT_XML, "\ufffd").replace(/[&<>"\r]/gu, (letter) => ESCAPED[letter] ?? letter);
}

/** Characters with which one request's elements are written, or one place's: repeated namespaces make them longer. */
const WRITTEN_MAX_LENGTH = 524_288;

/** Room for elements that are written together. */
export class XmlRoom {
  #left = WRITTEN_MAX_LENGTH;

  /** The text, of which the room has less from now on. Throws BAD_ARGUMENT where it does not fit. */
  taken(text: string): string {
    this.#left -= text.length;
    if (this.#left >= 0) return text;
    throw new GroveError(
      "BAD_ARGUMENT",
      "the XML is too long with the namespaces of all its elements: use shorter ones, or fewer elements",
    );
  }
}

/**
 * An element as XML that stands by itself: each namespace is declared where it is used. Throws BAD_ARGUMENT where that
 * is longer than the room.
 */
export function xmlOf(element: XmlElement, room: XmlRoom = new XmlRoom()): string {
  return written(element, undefined, room);
}

/** What is in an element, as XML that stands by itself. Throws as `xmlOf` does. */
export function innerXmlOf(element: XmlElement): string {
  const room = new XmlRoom();
  return element.children
    .map((child) => (typeof child === "string" ? room.taken(escapedXml(child)) : xmlOf(child, room)))
    .join("");
}

/** An empty element of a namespace, as XML that stands by itself. */
export function emptyElement(namespace: string, name: string): string {
  if (namespace === "DAV:") return `<D:${name}/>`;
  return namespace === "" ? `<${name} xmlns=""/>` : `<X:${name} xmlns:X="${escapedXml(namespace)}"/>`;
}

/** Namespaces by prefix that an element declares; those above it hold as well. */
interface Scope {
  readonly own: Map<string, string>;
  readonly above: Scope | undefined;
}

function written(element: XmlElement, above: Scope | undefined, room: XmlRoom): string {
  const scope: Scope = { own: new Map(), above };
  const declared: string[] = [];
  declare(element.prefix, element.namespace, scope, declared);
  const attributes = element.attributes.map(({ namespace, prefix, name, value }) => {
    if (prefix !== "" && prefix !== "xml") declare(prefix, namespace, scope, declared);
    return ` ${prefix === "" ? "" : `${prefix}:`}${name}="${escapedAttribute(value)}"`;
  });
  const tag = element.prefix === "" ? element.name : `${element.prefix}:${element.name}`;
  const start = room.taken(`<${tag}${declared.join("")}${attributes.join("")}`);
  if (element.children.length === 0) return `${start}/>`;
  const inner = element.children.map((child) =>
    typeof child === "string" ? room.taken(escapedXml(child)) : written(child, scope, room),
  );
  return `${start}>${inner.join("")}${room.taken(`</${tag}>`)}`;
}

function declare(prefix: string, namespace: string, scope: Scope, declared: string[]): void {
  if (prefix === "xml" || namespaceOf(prefix, scope) === namespace) return;
  scope.own.set(prefix, namespace);
  declared.push(` xmlns${prefix === "" ? "" : `:${prefix}`}="${escapedAttribute(namespace)}"`);
}

function namespaceOf(prefix: string, scope: Scope): string | undefined {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.above) {
    const namespace = at.own.get(prefix);
    if (namespace !== undefined) return namespace;
  }
  return undefined;
}

function escapedAttribute(value: string): string {
  return escapedXml(value).replace(/[\t\n]/gu, (letter) => (letter === "\t" ? "&#9;" : "&#10;"));
}
