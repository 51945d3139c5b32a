// The rule of shared processes: which test files may run in one process, one after the other.
import { readFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";

/** What only tells of the process, or concerns another one: a signal, a copy of the environment. */
const ONLY_READ =
  /\bprocess\.(?:(?:arch|execPath|getgid|getuid|hrtime|kill|nextTick|platform|stderr\.write|versions)\b|env\[(?:"\w+"|[A-Z_]+)\](?!\s*=[^=])|env(?=\s*\}))|\.{3}process\.env\b/g;
/** A word of `process`, or of a variable of that name. */
const WORD_OF_PROCESS = /\bprocess(?:\[|\.([a-z]\w*))/g;
/**
 * What else reaches the whole process: threads, its clocks and heap, its built-in modules. The short form of a
 * rig has a limit of its own, which a shared process would cut to that of any file.
 */
const OWN_PROCESS =
  /\btestShortForm\b|\bglobalThis\b|\bmock\.|\/proc\/self|node:(?:async_hooks|cluster|diagnostics_channel|inspector|module|perf_hooks|process|v8|vm|worker_threads)\b/;
const SPECIFIER = /(?:from|import)\s*\(?\s*"([^"]+)"/g;
/** Code that only tests use; what the product does with its process, its own tests know. */
const HELPER = /\.fixture\.ts$|^(?:src\/testing|bench|prove|tests)\//;
/** Keep folders and programs until the process exits, whose test files then all have ended. */
const HARMLESS = new Set(["prove/ends-with-us.ts", "src/testing/scratch-folder.ts"]);

/** What the rule needs of a file. */
interface Facts {
  /** What reaches the whole process, as written. */
  readonly word: string | undefined;
  readonly helpers: readonly string[];
}

/** Judges the test files of a repository; each file is read once. */
export class SharingRule {
  readonly #root: string;
  /** Folders by the beginning of a specifier, such as `#base/`. */
  readonly #folders: ReadonlyMap<string, string>;
  readonly #facts = new Map<string, Promise<Facts>>();

  /** `imports` are those of package.json. */
  constructor(root: string, imports: Readonly<Record<string, string>>) {
    this.#root = root;
    const withoutStar = (path: string): string => posix.normalize(path).replace(/\*$/, "");
    this.#folders = new Map(
      Object.entries(imports).map(([name, path]) => [withoutStar(name), withoutStar(path)]),
    );
  }

  /**
   * Why a file needs a process of its own, as `path: word`, for itself or for a helper that it imports.
   * Undefined where it may share one.
   */
  async reasonAlone(path: string): Promise<string | undefined> {
    const seen = new Set([path]);
    for (const file of seen) {
      const { word, helpers } = await this.#factsOf(file);
      if (word !== undefined) return `${file}: ${word}`;
      for (const helper of helpers) seen.add(helper);
    }
    return undefined;
  }

  #factsOf(path: string): Promise<Facts> {
    const known = this.#facts.get(path) ?? this.#read(path);
    this.#facts.set(path, known);
    return known;
  }

  async #read(path: string): Promise<Facts> {
    // A file that is not there is named by a text alone.
    const text = await readFile(join(this.#root, path), "utf8").catch(() => "");
    const imported = Array.from(text.matchAll(SPECIFIER), ([, specifier]) => this.#pathOf(specifier, path));
    const helpers = imported.filter((file) => HELPER.test(file) && !HARMLESS.has(file));
    return { word: wordIn(text), helpers };
  }

  /** The imported file; empty for a package. */
  #pathOf(specifier = "", from = ""): string {
    if (specifier.startsWith("./")) return posix.join(dirname(from), specifier);
    for (const [start, folder] of this.#folders) {
      if (specifier.startsWith(start)) return folder + specifier.slice(start.length);
    }
    return "";
  }
}

/** What reaches the whole process, as written. */
function wordIn(text: string): string | undefined {
  const words = text.replaceAll(ONLY_READ, "").matchAll(WORD_OF_PROCESS);
  const [own] = words.filter(([, name]) => name === undefined || name in process);
  return own?.[0] ?? OWN_PROCESS.exec(text)?.[0];
}
