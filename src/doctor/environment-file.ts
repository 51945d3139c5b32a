// Reads a file of variables as systemd does for its services, so that what is checked is what the servers get.

/** Characters that a backslash takes their meaning from between double quotation marks. */
const ESCAPED = /["\\`$]/;
const NAME = /^[A-Za-z_]\w*$/;

/**
 * The variables of an `EnvironmentFile`. A `#` or `;` begins a comment at the start of a line alone: behind a value it
 * belongs to the value. A backslash at the end joins a line with the next. Of two lines with one name the later counts.
 */
export function parseEnvironmentFile(text: string): Record<string, string> {
  const variables: Record<string, string> = {};
  const reader = new Reader(text.replaceAll(/\r\n?/g, "\n"));
  while (!reader.isAtEnd) {
    const [start, name = ""] = /^[ \t]*(?![#;=])([^=]+)=/.exec(reader.lineHere()) ?? [];
    if (start === undefined) reader.skipLine();
    else {
      const value = reader.value(start.length);
      if (NAME.test(name.trim())) variables[name.trim()] = value;
    }
  }
  return variables;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** The rest of this line. */
  lineHere(): string {
    const end = this.#text.indexOf("\n", this.#at);
    return this.#text.slice(this.#at, end === -1 ? undefined : end);
  }

  skipLine(): void {
    this.#at += this.lineHere().length + 1;
  }

  /** The value that begins so many characters further on; behind it the next line begins. */
  value(skipped: number): string {
    this.#at += skipped;
    let value = "";
    /** Blanks before it were quoted or escaped, so they stay. */
    let keptLength = 0;
    let isPlain = false;
    for (let mark = this.#next(); mark !== "" && mark !== "\n"; mark = this.#next()) {
      if (mark === "\\") {
        const escaped = this.#next();
        if (escaped !== "\n") value += escaped;
        keptLength = value.length;
        isPlain = true;
      } else if (!isPlain && (mark === '"' || mark === "'")) {
        value += this.#quoted(mark);
        keptLength = value.length;
      } else if (isPlain || (mark !== " " && mark !== "\t")) {
        value += mark;
        isPlain = true;
      }
    }
    return value.slice(0, keptLength) + value.slice(keptLength).trimEnd();
  }

  /** Text up to the closing mark, over lines too. */
  #quoted(mark: string): string {
    let text = "";
    for (let next = this.#next(); next !== "" && next !== mark; next = this.#next()) {
      if (mark === "'" || next !== "\\") text += next;
      else {
        const escaped = this.#next();
        if (ESCAPED.test(escaped)) text += escaped;
        else if (escaped !== "\n") text += `\\${escaped}`;
      }
    }
    return text;
  }

  #next(): string {
    return this.#text.charAt(this.#at++);
  }
}
