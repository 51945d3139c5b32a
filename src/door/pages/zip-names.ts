// Names inside archives: what Grove allows and other systems read as a way out, or cannot hold, is replaced.

const RESERVED = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(?:\.|$)/iu;
/** Bidirectional marks and other letters without a shape, which make one name look like another. */
const UNSEEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;
/** Letters of a name that every system takes. */
const NAME_MAX_LENGTH = 200;

/** Names of one folder of an archive, folded, each with the number that its next double is tried with. */
export type TakenNames = Map<string, number>;

/** A name that any system can unpack beside its neighbours; `taken` holds them, and takes this one. */
export function zipName(name: string, taken: TakenNames): string {
  const plain = name
    .replace(/[\\/:*?"<>|]/gu, "_")
    .replace(UNSEEN, "_")
    .replace(/[. ]+$/u, (end) => "_".repeat(end.length));
  const first = shortened(RESERVED.test(plain) ? `_${plain}` : plain);
  let safe = first;
  // Doubles go on from the last one's number: thousands of them would else be tried against one another.
  let number = taken.get(folded(first)) ?? 2;
  for (; taken.has(folded(safe)); number++) safe = numbered(first, number);
  taken.set(folded(first), number);
  taken.set(folded(safe), Math.max(2, taken.get(folded(safe)) ?? 2));
  return safe;
}

function shortened(text: string): string {
  return text.length <= NAME_MAX_LENGTH ? text : text.slice(0, NAME_MAX_LENGTH).toWellFormed();
}

function numbered(name: string, number: number): string {
  const at = name.lastIndexOf(".");
  const stem = at > 0 ? name.slice(0, at) : name;
  const ending = at > 0 ? name.slice(at) : "";
  return `${stem} (${number})${ending}`;
}

function folded(name: string): string {
  // By way of capitals, as file systems compare: "ß" is "ss" to some, and the Kelvin sign is "k".
  return name.normalize("NFC").toUpperCase().toLowerCase().normalize("NFC");
}
