// Texts, names, numbers and JSON that are known to break programs (B-09, W-11, W-13).
import type { SeededRandom } from "#prove/seeded-random.ts";

const TEXTS: readonly (string | Buffer)[] = [
  "",
  ".",
  "..",
  "/",
  "//",
  "/../../etc/passwd",
  "..%2f..%2fetc%2fpasswd",
  "a/./b",
  "\0",
  "a\0b",
  "\u0001\u001b[31m",
  "\u0085\u009f",
  "\ufffd",
  "\u202e\u2066gpj.exe",
  "e\u0301 and \u00e9",
  "CON",
  "nul.txt",
  "trailing.",
  "trailing ",
  "a".repeat(255),
  "a".repeat(256),
  "\u{1f4a5}".repeat(64),
  "x".repeat(5_000),
  "/d".repeat(1_100),
  "__proto__",
  "constructor",
  "toString",
  "' OR 1=1--",
  "%s%n%x",
  "${jndi:ldap://127.0.0.1/x}",
  "<script>alert(1)</script>",
  "=1+1",
  "null",
  "-1",
  "1e999",
  "18446744073709551616",
  "admin@example.com",
  "a@b@c",
  "@",
  "mock-jwt.",
  "sst_",
  "\r\nSet-Cookie: a=b",
  Buffer.from([0x2f, 0x80]),
  Buffer.from([0x2f, 0xc0, 0xaf]),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from([0xff, 0xfe]),
  Buffer.from([0xf4, 0x90, 0x80, 0x80]),
];

/** Draws one, now and then with something random inside. */
export function nastyText(random: SeededRandom): Buffer {
  const text = Buffer.from(random.pick(TEXTS) as string);
  if (random.chance(0.8)) return text;
  const at = random.below(text.length + 1);
  return Buffer.concat([text.subarray(0, at), random.bytes(random.below(6)), text.subarray(at)]);
}

/** Draws one that a header may hold: printable, without line ends. */
export function nastyHeader(random: SeededRandom): string {
  return nastyText(random)
    .toString("latin1")
    .replaceAll(/[^\x20-\x7e]/g, "~")
    .slice(0, 4_000)
    .trim();
}

const JSON_TEXTS: readonly string[] = [
  "null",
  "true",
  "0",
  "-0",
  "-1",
  "1.5",
  "1e30",
  "1e999",
  "18446744073709551615",
  "18446744073709551616",
  '""',
  '"\\u0000"',
  '"\\ud800"',
  "[]",
  "{}",
  "[[[[]]]]",
  '{"__proto__":{"isAdmin":true}}',
  '{"constructor":{"prototype":{}}}',
  '"12GB"',
  '["n1","n1"]',
];

/** A value as it stands in JSON. */
export function nastyJson(random: SeededRandom): string {
  if (random.chance(0.3)) return JSON.stringify(nastyText(random).toString("utf8"));
  if (random.chance(0.02)) return `${"[".repeat(2_000)}${"]".repeat(2_000)}`;
  return random.pick(JSON_TEXTS);
}

/** Returns JSON text with one of its values or keys changed, or a few of its characters. */
export function mutatedJson(text: string, random: SeededRandom): string {
  const values = [...text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false|null/g)];
  if (values.length === 0 || random.chance(0.2)) return mutatedCharacters(text, random);
  const { 0: value, index } = random.pick(values);
  const rest = text.slice(index + value.length);
  const isKey = /^\s*:/.test(rest);
  const next = isKey ? JSON.stringify(nastyText(random).toString("utf8")) : nastyJson(random);
  return text.slice(0, index) + next + rest;
}

/** Returns the text with some characters removed, doubled or replaced. */
export function mutatedCharacters(text: string, random: SeededRandom): string {
  const at = random.below(text.length + 1);
  switch (random.below(4)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + text.slice(at + random.between(1, 4));
    case 2:
      return text.slice(0, at) + random.bytes(random.between(1, 4)).toString("latin1") + text.slice(at);
    default:
      return text.slice(0, at) + text.slice(0, at);
  }
}
