// What programs leave as XML: doors put it into answers to others as it is, so that it must stand by itself.
import { GroveError } from "#base/errors.ts";
import { readElement } from "#wire/xml/xml-element.ts";

/** An element by its name, with its text. */
interface NamedElement {
  readonly namespace: string;
  readonly name: string;
  readonly xml: string;
}

/**
 * Throws BAD_ARGUMENT for anything but one whole element of that name, which declares its namespaces, and for more
 * than doors read.
 */
export function requireElement({ namespace, name, xml }: NamedElement): void {
  const root = readElement(xml, { what: "a property", isPart: true });
  if (root.name === name && root.namespace === namespace) return;
  throw new GroveError("BAD_ARGUMENT", "a property is the XML element of its own name and namespace");
}

/** The same for anything but what may stand in an element: text, and whole elements. */
export function requireContent(xml: string, what: string): void {
  readElement(`<content>${xml}</content>`, { what, isPart: true });
}
