// A filesystem on a loop device whose power can be cut: unflushed data is lost.
import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";

/** The least that XFS takes. The image is sparse. */
const IMAGE_BYTES = 400 * 1_048_576;
const UMOUNT_TRIES = 200;
/** XFS_IOC_GOINGDOWN, which ext4 knows as EXT4_IOC_SHUTDOWN. */
const CUT_IOCTL = "0x8004587d";
const SWITCH = `use Fcntl; $| = 1; while (<STDIN>) { my ($flags, $path) = /^(\\d+) (.*)$/ or die;
  sysopen(my $m, $path, O_RDONLY) or die "$!\\n"; ioctl($m, ${CUT_IOCTL}, pack("I", $flags)) or die "$!\\n"; print "cut\\n"; }`;

/** What a cut loses: everything unflushed, or all but the journal's own memory. */
export const CUT_FLAGS = { noLogFlush: 2, logFlush: 1 } as const;

/** How a filesystem is made and mounted. */
export interface DiskKind {
  readonly filesystem: "ext4" | "xfs";
  readonly make: readonly string[];
  readonly options: string;
}

/** The ways in which disks are made, by filesystem. */
export const DISK_KINDS: Readonly<Record<"ext4" | "xfs", readonly DiskKind[]>> = {
  ext4: [
    { filesystem: "ext4", make: ["-q", "-F"], options: "loop" },
    // Mounted without the option that flushes renames and truncations by itself.
    { filesystem: "ext4", make: ["-q", "-F"], options: "loop,data=writeback,noauto_da_alloc" },
  ],
  xfs: [{ filesystem: "xfs", make: ["-q", "-f"], options: "loop" }],
};

/** One disk, mounted or not. Only for a process in a mount namespace of its own. */
export class Disk {
  /** Where it is mounted. */
  readonly path: string;
  readonly kind: DiskKind;
  readonly #image: string;

  /** Makes the filesystem. */
  constructor(folder: string, kind: DiskKind) {
    this.kind = kind;
    this.path = join(folder, "disk");
    this.#image = join(folder, "image");
    mkdirSync(this.path, { recursive: true });
    rmSync(this.#image, { force: true });
    writeFileSync(this.#image, "");
    truncateSync(this.#image, IMAGE_BYTES);
    run(`mkfs.${kind.filesystem}`, [...kind.make, this.#image]);
  }

  mount(): void {
    run("mount", ["-o", this.kind.options, this.#image, this.path]);
  }

  /** Waits until no process holds it. */
  async unmount(): Promise<void> {
    for (let tries = 1; ; tries++) {
      const { status, stderr } = spawnSync("umount", [this.path], { encoding: "utf8" });
      if (status === 0) return;
      if (tries === UMOUNT_TRIES) throw new Error(`umount: ${stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

/** Cuts the power of a mounted disk, by a waiting process of its own, since Node has no ioctl. */
export class PowerSwitch {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;

  constructor() {
    this.#child = spawn("perl", ["-e", SWITCH], { stdio: ["pipe", "pipe", "inherit"] });
  }

  /** When this resolves nothing reaches the disk any more, and every call on it fails. */
  async cut(disk: Disk, flags: number): Promise<void> {
    const answer = Promise.race([once(this.#child.stdout, "data"), once(this.#child, "exit")]);
    this.#child.stdin.write(`${flags} ${disk.path}\n`);
    await answer;
    if (this.#child.exitCode !== null) throw new Error("the power cannot be cut");
  }

  end(): void {
    this.#child.kill();
  }
}

function run(command: string, words: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${words.join(" ")}: ${error?.message ?? stderr}`);
}
