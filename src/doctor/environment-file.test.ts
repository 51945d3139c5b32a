// Tests the reading of files of variables against what systemd makes of them (man systemd.exec, EnvironmentFile).
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEnvironmentFile } from "./environment-file.ts";

test("a file of variables is read as systemd reads it for the services", () => {
  const cases: [string, Record<string, string>][] = [
    ["A=1\nB=two words  \n", { A: "1", B: "two words" }],
    ["# A=1\n; B=2\n  # C=3\n\nD = 4", { D: "4" }],
    // What follows a value is no comment.
    ["SVC_AUTH_MOCK=1 # for today\nTOKEN=ab#cd", { SVC_AUTH_MOCK: "1 # for today", TOKEN: "ab#cd" }],
    ["F=-a b \\\n-c d=e \\\n-f g\nG=1\r\n", { F: "-a b -c d=e -f g", G: "1" }],
    ["# a comment \\\nA=1\nB=2", { A: "1", B: "2" }],
    ["-c d=e \\\nA=1\nB=2", { B: "2" }],
    [
      "A='x # y'\nB=\"a\\\"b\\$c\\n\"\nC='it''s' \nD=it's",
      { A: "x # y", B: 'a"b$c\\n', C: "its", D: "it's" },
    ],
    ["H=$argon2id$v=19$m=19456,t=2,p=1$x/y+z$w", { H: "$argon2id$v=19$m=19456,t=2,p=1$x/y+z$w" }],
    ["A=a\\\\b\\'c\nA=later\nno line\n=5\nB=", { A: "later", B: "" }],
    ["A='two\nlines'\nB=`x`\nexport C=1\nD='a' b", { A: "two\nlines", B: "`x`", D: "ab" }],
    ["A=end\\", { A: "end" }],
  ];
  for (const [text, expected] of cases) assert.deepEqual(parseEnvironmentFile(text), expected, text);
});
