// XML that somebody has stored without a door: written anew, so that it cannot end the answer around it.
import { GroveError } from "#base/errors.ts";
import type { DeadProperty } from "./resource.ts";
import { readXml, type XmlElement } from "./xml-element.ts";
import { escapedXml, innerXmlOf, xmlOf } from "./xml-text.ts";

/** A dead property whose XML is one element of its name; undefined where it is anything else. */
export function storedProperty({ namespace, name, xml }: DeadProperty): DeadProperty | undefined {
  const element = readStored(xml);
  const isOwn = element?.namespace === namespace && element.name === name;
  return element !== undefined && isOwn ? { namespace, name, xml: xmlOf(element) } : undefined;
}

/** What a lock's holder said of itself, as XML; as plain text where it is none. */
export function storedOwner(note: string): string {
  if (!/[<&]/u.test(note)) return escapedXml(note);
  const element = readStored(`<owner>${note}</owner>`);
  return element === undefined ? escapedXml(note) : innerXmlOf(element);
}

function readStored(xml: string): XmlElement | undefined {
  try {
    return readXml(Buffer.from(xml));
  } catch (error) {
    if (error instanceof GroveError) return undefined;
    throw error;
  }
}
