// Reads one source file for the rules of the house: its imports, its re-exports, its first words.
import { isNode, lineAt, parseTypeScript, type SyntaxNode, walk } from "./syntax-tree.ts";

/** One place where a file names another module. */
export interface ImportSite {
  /** The specifier as written, for example `#base/errors.ts`. */
  readonly specifier: string;
  /** One-based line of the statement or expression. */
  readonly line: number;
  /** A static import or re-export, `import()`, or an import type. */
  readonly kind: "static" | "dynamic" | "type";
}

/** The properties of a file that the rules of the house need. */
export interface SourceFile {
  /** Path below the root of the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly lineCount: number;
  readonly imports: readonly ImportSite[];
  /** True when the file does nothing but hand on what other modules export. */
  readonly isBarrel: boolean;
}

/** Parses a TypeScript file; throws where its syntax is wrong. */
export function readSource(path: string, text: string): SourceFile {
  const body = parseTypeScript(path, text);
  const imports: ImportSite[] = [];
  walk(body, (node) => {
    const site = importSite(node);
    if (site !== undefined) imports.push({ ...site, line: lineAt(text, node.start) });
  });
  return {
    path,
    text,
    lineCount: text.replace(/\n$/, "").split("\n").length,
    imports,
    isBarrel: isBarrel(body),
  };
}

function importSite(node: SyntaxNode): Omit<ImportSite, "line"> | undefined {
  const specifier = isNode(node["source"]) ? node["source"]["value"] : undefined;
  switch (node.type) {
    case "ImportDeclaration":
    case "ExportNamedDeclaration":
    case "ExportAllDeclaration": {
      if (typeof specifier !== "string") return undefined;
      const isType = node["importKind"] === "type" || node["exportKind"] === "type";
      return { specifier, kind: isType ? "type" : "static" };
    }
    case "ImportExpression":
      // A specifier that is computed cannot be judged, so it counts as one that no rule allows.
      return { specifier: typeof specifier === "string" ? specifier : "(computed)", kind: "dynamic" };
    case "TSImportType":
      return typeof specifier === "string" ? { specifier, kind: "type" } : undefined;
    case "TSExternalModuleReference": {
      const named = isNode(node["expression"]) ? node["expression"]["value"] : undefined;
      return typeof named === "string" ? { specifier: named, kind: "static" } : undefined;
    }
    default:
      return undefined;
  }
}

function isBarrel(body: readonly SyntaxNode[]): boolean {
  const handsOn = (node: SyntaxNode): boolean =>
    (node.type === "ExportNamedDeclaration" || node.type === "ExportAllDeclaration") &&
    Boolean(node["source"]);
  return body.some(handsOn) && body.every((node) => handsOn(node) || node.type === "ImportDeclaration");
}
