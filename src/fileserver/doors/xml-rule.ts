// What programs leave as XML: doors put it into answers to others as it is, so that it must stand by itself.
import { SaxesParser } from "saxes";
import { GroveError } from "#base/errors.ts";

/** An element by its name, with its text. */
interface NamedElement {
  readonly namespace: string;
  readonly name: string;
  readonly xml: string;
}

/** Throws BAD_ARGUMENT for anything but one whole element of that name, which declares its namespaces. */
export function requireElement({ namespace, name, xml }: NamedElement): void {
  const root = rootOf(xml, "a property");
  if (root.local === name && root.uri === namespace) return;
  throw new GroveError("BAD_ARGUMENT", "a property is the XML element of its own name and namespace");
}

/** Throws BAD_ARGUMENT for anything but what may stand in an element: text, and whole elements. */
export function requireContent(xml: string, what: string): void {
  rootOf(`<content>${xml}</content>`, what);
}

function rootOf(xml: string, what: string): { readonly uri: string; readonly local: string } {
  const parser = new SaxesParser({ xmlns: true });
  const refuse = (): never => {
    throw new GroveError("BAD_ARGUMENT", `${what} is well-formed XML that stands by itself`);
  };
  let root: { readonly uri: string; readonly local: string } | undefined;
  parser.on("error", refuse);
  parser.on("doctype", refuse);
  parser.on("xmldecl", refuse);
  parser.on("processinginstruction", refuse);
  parser.on("opentag", ({ uri, local }) => {
    root ??= { uri, local };
  });
  parser.write(xml).close();
  return root ?? refuse();
}
