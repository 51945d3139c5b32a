// Reads one source file for the rules of the house: its imports, its re-exports, its first words.
import { parseAst } from "rolldown/parseAst";

/** One place where a file names another module. */
export interface ImportSite {
  /** The specifier as written, for example `#base/errors.ts`. */
  readonly specifier: string;
  /** One-based line of the statement or expression. */
  readonly line: number;
  /** A static import or re-export, `import()`, or an import type. */
  readonly kind: "static" | "dynamic" | "type";
}

/** What the rules of the house need to know of a file. */
export interface SourceFile {
  /** Path below the root of the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly lineCount: number;
  readonly imports: readonly ImportSite[];
  /** True when the file does nothing but hand on what other modules export. */
  readonly isBarrel: boolean;
}

/** The parts of a syntax tree's node that are read here; the parser's own types cover far more. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly source?: Node | null;
  readonly value?: unknown;
  readonly exportKind?: string;
  readonly importKind?: string;
  readonly argument?: Node;
  readonly expression?: Node;
}

/** Parses a TypeScript file; throws where its syntax is wrong. */
export function readSource(path: string, text: string): SourceFile {
  const program = parseAst(text, { lang: path.endsWith("x") ? "tsx" : "ts" }, path) as unknown as {
    readonly body: readonly Node[];
  };
  const imports: ImportSite[] = [];
  visit(program.body, (node) => {
    const site = importSite(node);
    if (site !== undefined) imports.push({ ...site, line: lineAt(text, node.start) });
  });
  return {
    path,
    text,
    lineCount: text.replace(/\n$/, "").split("\n").length,
    imports,
    isBarrel: isBarrel(program.body),
  };
}

function importSite(node: Node): Omit<ImportSite, "line"> | undefined {
  switch (node.type) {
    case "ImportDeclaration":
    case "ExportNamedDeclaration":
    case "ExportAllDeclaration": {
      if (typeof node.source?.value !== "string") return undefined;
      const isType = node.importKind === "type" || node.exportKind === "type";
      return { specifier: node.source.value, kind: isType ? "type" : "static" };
    }
    case "ImportExpression":
      // A specifier that is computed cannot be judged, so it counts as one that no rule allows.
      return {
        specifier: typeof node.source?.value === "string" ? node.source.value : "(computed)",
        kind: "dynamic",
      };
    case "TSImportType":
      return typeof node.source?.value === "string"
        ? { specifier: node.source.value, kind: "type" }
        : undefined;
    case "TSExternalModuleReference":
      return typeof node.expression?.value === "string"
        ? { specifier: node.expression.value, kind: "static" }
        : undefined;
    default:
      return undefined;
  }
}

function isBarrel(body: readonly Node[]): boolean {
  const handsOn = (node: Node): boolean =>
    (node.type === "ExportNamedDeclaration" || node.type === "ExportAllDeclaration") && Boolean(node.source);
  return body.some(handsOn) && body.every((node) => handsOn(node) || node.type === "ImportDeclaration");
}

function visit(value: unknown, onNode: (node: Node) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) visit(item, onNode);
  } else if (typeof value === "object" && value !== null) {
    if ("type" in value && "start" in value) onNode(value as Node);
    for (const child of Object.values(value)) visit(child, onNode);
  }
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
