// Makes text that came from elsewhere safe to print: nothing in it can move the cursor, recolour or reorder what people read.

/**
 * C0, DEL and C1 controls; marks that turn the direction of writing; line and paragraph separators; characters that
 * show nothing; tags; halves of surrogate pairs.
 */
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

/** Replaces whatever could deceive or drive a terminal by visible escapes, such as \x1b and \u{202e} (failure B-09). */
export function terminalText(text: string): string {
  return text.replaceAll(UNSAFE, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}

/** The same for text that is JSON already: the escapes are JSON's own, so that it parses to what it was. */
export function terminalJson(json: string): string {
  return json.replaceAll(UNSAFE, (character) => {
    // What is left unescaped in JSON outside strings is only the line feed of its layout.
    if (character === "\n") return character;
    let escaped = "";
    for (let index = 0; index < character.length; index++) {
      escaped += `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
    }
    return escaped;
  });
}

/** True when bytes hold something that a terminal would obey: controls other than tab, line feed and carriage return. */
export function holdsTerminalControls(bytes: Uint8Array): boolean {
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] as number;
    if (byte < 0x20 ? byte !== 0x09 && byte !== 0x0a && byte !== 0x0d : byte === 0x7f) return true;
    // C1 controls as UTF-8 are C2 80 to C2 9F; a lone byte in that range is one to terminals that read Latin-1.
    if (byte >= 0x80 && byte <= 0x9f) {
      const before = index === 0 ? undefined : bytes[index - 1];
      if (before === undefined || before === 0xc2 || before < 0x80) return true;
    }
  }
  return false;
}
