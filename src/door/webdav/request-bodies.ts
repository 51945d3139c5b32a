// The bodies of PROPFIND, PROPPATCH and LOCK.
import { GroveError } from "#base/errors.ts";
import { elementsOf, type XmlElement } from "#wire/xml/xml-element.ts";
import type { LockWish, PropertyChange } from "./resource.ts";
import { davChild, readXml } from "./xml-body.ts";
import { innerXmlOf, XmlRoom, xmlOf } from "./xml-text.ts";

/** Properties that a PROPFIND names or that a PROPPATCH changes, at most. */
const PROPERTIES_MAX = 200;

/** The name of a property. */
export interface PropertyName {
  readonly namespace: string;
  readonly name: string;
}

/** What a PROPFIND asks for. */
export type FindRequest =
  | { readonly kind: "all"; readonly include: readonly PropertyName[] }
  | { readonly kind: "names" }
  | { readonly kind: "some"; readonly properties: readonly PropertyName[] };

/** A PROPFIND's body; an empty one asks for all (RFC 4918, section 9.1). Throws BAD_ARGUMENT. */
export function readPropfind(body: Uint8Array): FindRequest {
  if (body.length === 0) return { kind: "all", include: [] };
  const root = rootNamed(body, "propfind");
  const asked = elementsOf(root).filter(
    ({ namespace, name }) => namespace === "DAV:" && ["allprop", "propname", "prop"].includes(name),
  );
  const [only, more] = asked;
  if (only === undefined || more !== undefined) {
    throw new GroveError("BAD_ARGUMENT", "a PROPFIND has one of allprop, propname and prop");
  }
  if (only.name === "propname") return { kind: "names" };
  if (only.name === "prop") return { kind: "some", properties: namesIn(only) };
  const include = davChild(root, "include");
  return { kind: "all", include: include === undefined ? [] : namesIn(include) };
}

/** A PROPPATCH's changes in their order. Throws BAD_ARGUMENT. */
export function readProppatch(body: Uint8Array): PropertyChange[] {
  const changes: PropertyChange[] = [];
  const room = new XmlRoom();
  for (const step of elementsOf(rootNamed(body, "propertyupdate"))) {
    if (step.namespace !== "DAV:" || (step.name !== "set" && step.name !== "remove")) continue;
    const prop = davChild(step, "prop");
    if (prop === undefined) throw new GroveError("BAD_ARGUMENT", `a ${step.name} of a PROPPATCH has a prop`);
    for (const element of elementsOf(prop)) changes.push(changeOf(step, prop, element, room));
  }
  if (changes.length === 0) throw new GroveError("BAD_ARGUMENT", "a PROPPATCH changes at least one property");
  if (changes.length > PROPERTIES_MAX) throw tooMany();
  return changes;
}

/** What a LOCK's body asks for. Throws BAD_ARGUMENT. */
export function readLockInfo(body: Uint8Array): Pick<LockWish, "scope" | "owner"> {
  const root = rootNamed(body, "lockinfo");
  const scope = davChild(root, "lockscope");
  const type = davChild(root, "locktype");
  const isExclusive = scope !== undefined && davChild(scope, "exclusive") !== undefined;
  const isShared = scope !== undefined && davChild(scope, "shared") !== undefined;
  if (isExclusive === isShared || type === undefined || davChild(type, "write") === undefined) {
    throw new GroveError("BAD_ARGUMENT", "a LOCK asks for an exclusive or a shared write lock");
  }
  const owner = davChild(root, "owner");
  return { scope: isExclusive ? "exclusive" : "shared", owner: owner === undefined ? "" : innerXmlOf(owner) };
}

function changeOf(step: XmlElement, prop: XmlElement, element: XmlElement, room: XmlRoom): PropertyChange {
  const { namespace, name } = element;
  if (step.name === "remove") return { kind: "remove", namespace, name };
  // A language that is set above the property holds for it (RFC 4918, section 4.3).
  const language = element.language ?? prop.language;
  const hasOwn = element.attributes.some(
    (attribute) => attribute.prefix === "xml" && attribute.name === "lang",
  );
  const attributes =
    language === undefined || hasOwn
      ? element.attributes
      : [...element.attributes, { namespace: "", prefix: "xml", name: "lang", value: language }];
  return { kind: "set", property: { namespace, name, xml: xmlOf({ ...element, attributes }, room) } };
}

function namesIn(element: XmlElement): PropertyName[] {
  const names = elementsOf(element).map(({ namespace, name }) => ({ namespace, name }));
  if (names.length > PROPERTIES_MAX) throw tooMany();
  return names;
}

function rootNamed(body: Uint8Array, name: string): XmlElement {
  const root = readXml(body);
  if (root.namespace === "DAV:" && root.name === name) return root;
  throw new GroveError("BAD_ARGUMENT", `the body's element is "${name}" of the namespace "DAV:"`);
}

function tooMany(): GroveError {
  return new GroveError("BAD_ARGUMENT", `a request names at most ${PROPERTIES_MAX} properties`);
}
