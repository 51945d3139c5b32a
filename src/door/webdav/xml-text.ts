// Writes XML: escaped text, and elements with the namespaces that they need.
import type { XmlElement } from "./xml-element.ts";

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

/** An element as XML that stands by itself: each namespace is declared where it is used. */
export function xmlOf(element: XmlElement): string {
  return written(element, new Map());
}

/** What is in an element, as XML that stands by itself. */
export function innerXmlOf(element: XmlElement): string {
  return element.children
    .map((child) => (typeof child === "string" ? escapedXml(child) : xmlOf(child)))
    .join("");
}

/** An empty element of a namespace, as XML that stands by itself. */
export function emptyElement(namespace: string, name: string): string {
  if (namespace === "DAV:") return `<D:${name}/>`;
  return namespace === "" ? `<${name} xmlns=""/>` : `<X:${name} xmlns:X="${escapedXml(namespace)}"/>`;
}

function written(element: XmlElement, above: ReadonlyMap<string, string>): string {
  const scope = new Map(above);
  const declared: string[] = [];
  declare(element.prefix, element.namespace, scope, declared);
  const attributes = element.attributes.map(({ namespace, prefix, name, value }) => {
    if (prefix !== "" && prefix !== "xml") declare(prefix, namespace, scope, declared);
    return ` ${prefix === "" ? "" : `${prefix}:`}${name}="${escapedAttribute(value)}"`;
  });
  const tag = element.prefix === "" ? element.name : `${element.prefix}:${element.name}`;
  const start = `<${tag}${declared.join("")}${attributes.join("")}`;
  if (element.children.length === 0) return `${start}/>`;
  const inner = element.children.map((child) =>
    typeof child === "string" ? escapedXml(child) : written(child, scope),
  );
  return `${start}>${inner.join("")}</${tag}>`;
}

function declare(prefix: string, namespace: string, scope: Map<string, string>, declared: string[]): void {
  if (prefix === "xml" || scope.get(prefix) === namespace) return;
  scope.set(prefix, namespace);
  declared.push(` xmlns${prefix === "" ? "" : `:${prefix}`}="${escapedAttribute(namespace)}"`);
}

function escapedAttribute(value: string): string {
  return escapedXml(value).replace(/[\t\n]/gu, (letter) => (letter === "\t" ? "&#9;" : "&#10;"));
}
