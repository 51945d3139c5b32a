// Reads the small XML documents of an object store within bounds; entities beyond XML's five are errors.
import { SaxesParser } from "saxes";

/** One element: its text without that of its children. */
export interface XmlElement {
  /** Without a namespace's prefix. */
  readonly name: string;
  readonly children: readonly XmlElement[];
  readonly text: string;
}

interface OpenElement extends XmlElement {
  readonly children: XmlElement[];
  text: string;
}

const DEPTH_MAX = 8;
const ELEMENTS_MAX = 20_000;

/** The root element; undefined for anything but a whole document within the bounds. */
export function xmlRoot(document: string): XmlElement | undefined {
  const top: OpenElement = { name: "", children: [], text: "" };
  const open = [top];
  let elements = 0;
  const parser = new SaxesParser();
  const refuse = (why: string): never => {
    throw new SyntaxError(why);
  };
  parser.on("error", (error) => refuse(error.message));
  parser.on("doctype", () => refuse("a document type"));
  parser.on("opentag", ({ name }) => {
    if (open.length > DEPTH_MAX || ++elements > ELEMENTS_MAX) refuse("too many elements");
    const element: OpenElement = { name: name.slice(name.indexOf(":") + 1), children: [], text: "" };
    open.at(-1)?.children.push(element);
    open.push(element);
  });
  parser.on("text", (text) => {
    const element = open.at(-1);
    if (element !== undefined) element.text += text;
  });
  parser.on("closetag", () => open.pop());
  try {
    parser.write(document).close();
  } catch {
    return undefined;
  }
  return top.children[0];
}

/** Text of the first child of that name; empty without one. */
export function childText(element: XmlElement | undefined, name: string): string {
  return element?.children.find((child) => child.name === name)?.text ?? "";
}

/** Text as it may stand between tags. */
export function xmlText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
