// The machine that is set up: where its settings, data and units lie, and what changes it beside files.
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, type Stats } from "node:fs";
import { lchown, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { GroveError } from "#base/errors.ts";

/** The user that the units run as. */
const SERVICE_USER = "grove";
/** Where packages put units, and where an administrator does. */
const PACKAGE_UNITS = "/usr/lib/systemd/system";
const OWN_UNITS = "/etc/systemd/system";

/** Folders of one installation, and the acts on its machine. */
export interface Machine {
  /** False below a folder: nothing but files in it is changed. */
  readonly isSystem: boolean;
  /** Folder of the environment files. */
  readonly settings: string;
  /** Folder of the data unless an answer says another. */
  readonly data: string;
  /** Folder for units that the package has not brought. */
  readonly units: string;
  /** The launcher, as units start it. */
  readonly program: string;
  /** True when the package's own unit is there. */
  hasPackageUnit(unit: string): boolean;
  /** Text of the unit that came with this program. */
  unitTemplate(unit: string): Promise<string>;
  /** Gives files and folders to the services' user; whole folders with what is in them. */
  give(paths: readonly string[]): Promise<void>;
  /** The same for a folder without what is in it. */
  giveFolder(path: string): Promise<void>;
  /** Makes the services' user where it is missing; true when it did. */
  makeUser(home: string): boolean;
  /** Has units started with the machine, or not any more. */
  enable(units: readonly string[]): void;
  disable(units: readonly string[]): void;
}

/** This program's folder: a clone, an npm package, or /usr/lib/grove. */
const HOME = fileURLToPath(new URL("../..", import.meta.url));

/** The machine itself, for root alone, or all of it below one folder. Throws BAD_ARGUMENT. */
export function openMachine(below: string | undefined): Machine {
  const program = join(HOME, "grove");
  if (below !== undefined) return machineBelow(resolve(below), program);
  if (process.getuid?.() !== 0) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "only root can set up this machine: 'sudo grove init'; to see what it would write, add -below FOLDER",
    );
  }
  if (/^\/(?:home|root|tmp|var\/tmp)\//.test(program)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `the units cannot see ${HOME}: install Grove elsewhere, such as by its package or 'npm i -g' as root`,
    );
  }
  return {
    isSystem: true,
    settings: "/etc/grove",
    data: "/var/lib/grove",
    units: OWN_UNITS,
    program,
    hasPackageUnit: (unit) => existsSync(join(PACKAGE_UNITS, unit)),
    unitTemplate,
    give: async (paths) => giveAll(paths, serviceIds()),
    async giveFolder(path) {
      const { uid, gid } = serviceIds();
      await lchown(path, uid, gid);
    },
    makeUser(home) {
      if (spawnSync("getent", ["passwd", SERVICE_USER]).status === 0) return false;
      run("useradd", [
        "--system",
        "--user-group",
        "--home-dir",
        home,
        "--shell",
        "/usr/sbin/nologin",
        SERVICE_USER,
      ]);
      return true;
    },
    enable(units) {
      if (existsSync("/run/systemd/system")) run("systemctl", ["daemon-reload"]);
      if (units.length > 0) run("systemctl", ["--quiet", "enable", ...units]);
    },
    disable(units) {
      if (units.length > 0) run("systemctl", ["--quiet", "disable", ...units]);
    },
  };
}

function machineBelow(folder: string, program: string): Machine {
  return {
    isSystem: false,
    settings: join(folder, "etc"),
    data: join(folder, "data"),
    units: join(folder, "units"),
    program,
    hasPackageUnit: () => false,
    unitTemplate,
    give: async () => undefined,
    giveFolder: async () => undefined,
    makeUser: () => false,
    enable: () => undefined,
    disable: () => undefined,
  };
}

/** The sources have the templates; the Debian package has the units alone. */
async function unitTemplate(unit: string): Promise<string> {
  const own = join(HOME, "packaging/systemd", unit);
  return readFile(existsSync(own) ? own : join(PACKAGE_UNITS, unit), "utf8");
}

function serviceIds(): { readonly uid: number; readonly gid: number } {
  const { stdout } = spawnSync("getent", ["passwd", SERVICE_USER], { encoding: "utf8" });
  const [, , uid, gid] = stdout.split(":");
  if (uid === undefined || gid === undefined)
    throw new GroveError("BAD_ARGUMENT", `there is no user ${SERVICE_USER}`);
  return { uid: Number(uid), gid: Number(gid) };
}

/**
 * Gives whole folders away. A service may exchange its own folders for links meanwhile, so the walk is the
 * system's, which goes from open folder to open folder, and not by paths.
 */
export function giveAll(
  paths: readonly string[],
  { uid, gid }: { readonly uid: number; readonly gid: number },
): void {
  if (paths.length > 0) run("chown", ["-h", "-R", "-P", `${uid}:${gid}`, "--", ...paths]);
}

/**
 * Throws BAD_ARGUMENT where a path, or what lies directly in it, is a link that somebody else made: a service that
 * was taken over would have root read and write elsewhere through it.
 */
export function refuseForeignLinks(paths: readonly string[], own: number = process.getuid?.() ?? 0): void {
  for (const path of paths) {
    const entries = statsOf(path)?.isDirectory() === true ? readdirSync(path) : [];
    for (const each of [path, ...entries.map((name) => join(path, name))]) {
      const stats = statsOf(each);
      if (stats?.isSymbolicLink() !== true || stats.uid === own) continue;
      throw new GroveError(
        "BAD_ARGUMENT",
        `${each} is a link, which no 'grove init' made: nothing was changed. Find out who did, then remove it`,
      );
    }
  }
}

function statsOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

function run(command: string, words: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, words, { encoding: "utf8" });
  if (status === 0) return;
  const why = error?.message ?? stderr.trim();
  throw new GroveError("BAD_ARGUMENT", `${command} ${words.join(" ")} failed: ${why}`);
}
