// Tests that completion knows every command and flag, and what real bash makes of a beginning.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { runVerb } from "#client/commands/client.fixture.ts";
import { completionOf } from "#client/commands/completion-command.ts";
import type { CommandHost } from "#client/connection/command-host.ts";
import { GROVE_ENTRY } from "#testing/grove-program.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { COMMANDS } from "./commands.ts";

const HAS_BASH = spawnSync("bash", ["--version"]).status === 0;
const scripts = new Map<string, string>();
let folder = "";

before(async () => {
  folder = scratchFolder("grove-completion-");
  const env = { ...process.env, GROVE_CONFIG_DIR: folder };
  // One start shows that the program leads there; each loads the modules of all commands.
  const started = execFileSync(process.execPath, [GROVE_ENTRY, "completion", "bash"], {
    encoding: "utf8",
    env,
  });
  scripts.set("bash", started);
  const module = { command: (host?: CommandHost) => completionOf(() => COMMANDS, host) };
  for (const shell of ["zsh", "fish"]) scripts.set(shell, (await runVerb(module, [shell], env)).out);
  writeFileSync(join(folder, "grove.bash"), scripts.get("bash") ?? "");
  // A stand-in for the program that lists the cluster.
  const program = `#!/bin/sh\ncase "$4" in "alice@example.com:/d") echo "alice@example.com:/docs/";; "/w") echo "/with blank/"; echo "/word.txt";; "/with b") echo "/with blank/";; esac\n`;
  writeFileSync(join(folder, "grove"), program);
  chmodSync(join(folder, "grove"), 0o755);
});

test("every command with each of its flags, and every subcommand, is in the script of each shell", async () => {
  for (const { name, load } of COMMANDS) {
    const parser = (await load()).command();
    for (const [shell, script] of scripts) {
      assert.match(script, new RegExp(`\\b${name}\\b`), `${shell} ${name}`);
      for (const { long } of parser.options) {
        const flag = shell === "fish" ? `-l ${long?.slice(2)}` : long;
        assert.ok(script.includes(flag ?? ""), `${shell} ${name} ${long}`);
      }
      for (const child of name === "completion" ? [] : parser.commands) {
        assert.ok(
          script.includes(
            shell === "fish"
              ? `${name}; and __fish_seen_subcommand_from ${child.name()}`
              : `"${name} ${child.name()} "*`,
          ),
          `${shell} ${name} ${child.name()}`,
        );
      }
    }
  }
});

/** The candidates of bash for a line with the cursor at its end, split into words by bash's rules. */
function complete(line: string): string[] {
  const words = line.split(/ |(?<=[:@])|(?=[:@])/);
  const program = `
    source ${folder}/grove.bash
    COMP_LINE=$1; COMP_POINT=\${#1}; shift; COMP_WORDS=("$@"); COMP_WORDS[0]=${folder}/grove; COMP_CWORD=$(($# - 1))
    _grove; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const answer = execFileSync("bash", ["--norc", "-c", program, "bash", line, ...words], {
    encoding: "utf8",
  });
  return answer.split("\n").filter((word) => word !== "");
}

test("bash completes commands, subcommands, flags with one dash or two, choices", { skip: !HAS_BASH }, () => {
  assert.deepEqual(complete("grove fsc"), ["fsck"]);
  assert.deepEqual(complete("grove help quo"), ["quota"]);
  assert.deepEqual(complete("grove trash res"), ["restore"]);
  assert.deepEqual(complete("grove trash empty --old"), ["--older-than"]);
  assert.deepEqual(complete("grove fileserver -tls_ce"), ["--tls-cert"]);
  assert.deepEqual(complete("grove why /docs del"), ["delete"]);
  assert.deepEqual(complete("grove completion f"), ["fish"]);
});

test("bash completes paths on the cluster, with blanks, and behind a user's name", {
  skip: !HAS_BASH,
}, () => {
  assert.deepEqual(complete("grove ls /w"), ["/with blank/", "/word.txt"]);
  assert.deepEqual(complete("grove ls /with\\ b"), ["/with blank/"]);
  // Bash has cut the word behind the colon, and puts back only what follows it.
  assert.deepEqual(complete("grove ls alice@example.com:/d"), ["/docs/"]);
  assert.deepEqual(complete("grove whoami /w"), []);
});
