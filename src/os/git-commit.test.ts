// The commit of a clone, a worktree and a packed clone, as git names it; null outside a clone.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { commitOfClone, gitCommit } from "./git-commit.ts";

const folder = scratchFolder("grove-git-");

function git(at: string, ...words: readonly string[]): string {
  const settings = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"];
  return execFileSync("git", ["-C", at, ...settings, ...words], { encoding: "utf8" }).trim();
}

test("it is the commit that git names: on a branch, detached, packed, in a worktree (D12)", () => {
  const clone = mkdtempSync(join(folder, "clone-"));
  git(clone, "init", "-q");
  assert.equal(commitOfClone(clone), null);
  git(clone, "commit", "-q", "--allow-empty", "-m", "one");
  const head = (): string => git(clone, "rev-parse", "HEAD");
  assert.equal(commitOfClone(clone), head());
  git(clone, "pack-refs", "--all");
  assert.equal(commitOfClone(clone), head());
  git(clone, "checkout", "-q", "--detach");
  git(clone, "commit", "-q", "--allow-empty", "-m", "two");
  assert.equal(commitOfClone(clone), head());
  const tree = join(folder, "tree");
  git(clone, "worktree", "add", "-q", "-b", "side/branch", tree, "main");
  assert.equal(commitOfClone(tree), git(tree, "rev-parse", "HEAD"));
  assert.notEqual(commitOfClone(tree), head());
});

test("a folder without git, and a broken one, is null and no failure", () => {
  const none = mkdtempSync(join(folder, "none-"));
  assert.equal(commitOfClone(none), null);
  writeFileSync(join(none, ".git"), "gitdir: ../../nowhere\n");
  assert.equal(commitOfClone(none), null);
  const own = gitCommit();
  assert.ok(own === null || /^[0-9a-f]{40,64}$/.test(own));
});
