// Chooses the form of an answer by what a request says that it accepts (RFC 9110, section 12.5.1).

/** Items of an Accept header that are read; more are nobody's honest wish. */
const ITEMS_MAX = 32;

interface Range {
  readonly type: string;
  readonly quality: number;
}

/**
 * The offer of the highest quality; the first of those that are equal, and the first of all when none is acceptable, since an answer in
 * another form is of more use than none. Offers are lower-case media types without parameters.
 */
export function preferredType<T extends string>(
  accept: string | undefined,
  offers: readonly [T, ...(readonly T[])],
): T {
  if (accept === undefined || accept.trim() === "") return offers[0];
  const ranges = accept
    .split(",", ITEMS_MAX)
    .map(parseRange)
    .filter((range) => range !== undefined);
  let best = offers[0];
  let bestQuality = qualityOf(best, ranges);
  for (const offer of offers) {
    const quality = qualityOf(offer, ranges);
    if (quality > bestQuality) {
      best = offer;
      bestQuality = quality;
    }
  }
  return best;
}

/** The most specific range that fits decides; of equal ones, such as two versions of a type, the best. */
function qualityOf(offer: string, ranges: readonly Range[]): number {
  const [kind = ""] = offer.split("/", 1);
  for (const wanted of [offer, `${kind}/*`, "*/*"]) {
    const qualities = ranges.filter(({ type }) => type === wanted).map(({ quality }) => quality);
    if (qualities.length > 0) return Math.max(...qualities);
  }
  return 0;
}

function parseRange(item: string): Range | undefined {
  const [type = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
  if (!/^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+$/.test(type)) return undefined;
  let quality = 1;
  for (const parameter of parameters) {
    const value = /^q\s*=\s*(.*)$/.exec(parameter)?.[1];
    if (value === undefined) continue;
    // What is no quality counts as none: the client did not mean this to be chosen for it.
    quality = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(value) ? Number(value) : 0;
  }
  return { type, quality };
}
