// XML that somebody has stored without a door: written anew, so that it cannot end the answer around it.
import { GroveError } from "#base/errors.ts";
import type { XmlElement } from "#wire/xml/xml-element.ts";
import type { DeadProperty } from "./resource.ts";
import { readXml } from "./xml-body.ts";
import { escapedXml, innerXmlOf, XmlRoom, xmlOf } from "./xml-text.ts";

/** A dead property whose XML is one element of its name and fits into the room; undefined where it is anything else. */
export function storedProperty(
  { namespace, name, xml }: DeadProperty,
  room: XmlRoom = new XmlRoom(),
): DeadProperty | undefined {
  return unlessRefused(() => {
    const element = readStored(xml);
    const isOwn = element.namespace === namespace && element.name === name;
    return isOwn ? { namespace, name, xml: xmlOf(element, room) } : undefined;
  });
}

/** What a lock's holder said of itself, as XML; as plain text where it is none. */
export function storedOwner(note: string): string {
  if (!/[<&]/u.test(note)) return escapedXml(note);
  const inner = unlessRefused(() => innerXmlOf(readStored(`<owner>${note}</owner>`)));
  return inner ?? escapedXml(note);
}

function readStored(xml: string): XmlElement {
  return readXml(Buffer.from(xml));
}

function unlessRefused<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof GroveError) return undefined;
    throw error;
  }
}
