// Escapes text from elsewhere so that it cannot move the cursor, recolour or reorder the output.

/**
 * C0, DEL and C1 controls; bidirectional marks; line and paragraph separators; invisible characters; tags;
 * unpaired surrogates.
 */
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

/** Replaces unsafe characters by visible escapes, such as \x1b and \u{202e} (failure B-09). */
export function terminalText(text: string): string {
  return text.replaceAll(UNSAFE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}

/** The same for JSON text: the escapes are JSON's own, so that it parses to the same value. */
export function terminalJson(json: string): string {
  return json.replaceAll(UNSAFE, (character) => {
    // The only unescaped control outside JSON's strings is the line feed of its layout.
    if (character === "\n") return character;
    let escaped = "";
    for (let index = 0; index < character.length; index++) {
      escaped += `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
    }
    return escaped;
  });
}

/**
 * True when bytes hold terminal controls other than tab, line feed and carriage return. `preceding` is the byte before
 * them, if there is one.
 */
export function holdsTerminalControls(bytes: Uint8Array, preceding?: number): boolean {
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] as number;
    if (byte < 0x20 ? byte !== 0x09 && byte !== 0x0a && byte !== 0x0d : byte === 0x7f) return true;
    // C1 controls are C2 80 to C2 9F in UTF-8; a lone byte of that range is one on Latin-1 terminals.
    if (byte >= 0x80 && byte <= 0x9f) {
      const before = index === 0 ? preceding : bytes[index - 1];
      if (before === undefined || before === 0xc2 || before < 0x80) return true;
    }
  }
  return false;
}
