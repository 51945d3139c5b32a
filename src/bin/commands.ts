// The table of Grove's commands: each with one sentence, and its module imported only when it runs.
import { completionEntry, FILE_COMMANDS, SIGN_IN_COMMANDS } from "./client-commands.ts";
import type { CommandEntry, CommandGroup } from "./command-table.ts";

/** Every command of the program (design, "Processes"). */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    title: "Start here",
    commands: [
      {
        name: "up",
        summary: "Run a whole cluster on this machine, with demo users",
        server: true,
        load: () => import("#devcluster/command.ts"),
      },
      ...SIGN_IN_COMMANDS,
    ],
  },
  {
    title: "Files",
    commands: FILE_COMMANDS,
  },
  {
    title: "Running a cluster",
    commands: [
      {
        name: "init",
        summary: "Set this machine up: questions, checks, what to type next",
        load: () => import("#setup/command.ts"),
      },
      {
        name: "fileserver",
        summary: "Run a storage node",
        server: true,
        load: () => import("#fileserver/process/command.ts"),
      },
      {
        name: "metaserver",
        summary: "Run the coordinator that knows where each root lives",
        server: true,
        load: () => import("#metaserver/process/command.ts"),
      },
      {
        name: "admin",
        summary: "Run the console: the state of the cluster in a browser",
        server: true,
        load: () => import("#console/app/command.ts"),
      },
      {
        name: "door",
        summary: "Open a door: WebDAV for people without a terminal",
        server: true,
        load: () => import("#door/process/command.ts"),
      },
      {
        name: "node",
        summary: "Bring a new machine into the cluster",
        load: () => import("#metaserver/process/node-command.ts"),
      },
      {
        name: "root",
        summary: "Move a user's files to another machine",
        load: () => import("#metaserver/process/root-move-command.ts"),
      },
      {
        name: "rebalance",
        summary: "Move users' files from full machines to empty ones",
        load: () => import("#metaserver/process/rebalance-command.ts"),
      },
      {
        name: "ca",
        summary: "Make and keep the cluster's own certificate authority",
        load: () => import("#metaserver/process/ca-command.ts"),
      },
      {
        name: "user",
        summary: "Lock users out, and let them in again",
        load: () => import("./user-group.ts"),
      },
      {
        name: "backup",
        summary: "Back up the data of a storage node, and restore it",
        load: () => import("#fileserver/process/backup-command.ts"),
      },
      {
        name: "fsck",
        summary: "Recount and verify the data of a stopped storage node",
        load: () => import("#fileserver/process/fsck-command.ts"),
      },
      {
        name: "downgrade",
        summary: "Take a stopped node's data back to an older Grove",
        load: () => import("#fileserver/process/downgrade-command.ts"),
      },
      {
        name: "audit",
        summary: "Check that the audit log of a process is whole",
        load: () => import("#fileserver/process/audit-command.ts"),
      },
    ],
  },
  {
    title: "More",
    commands: [
      {
        name: "doctor",
        summary: "Look for what is wrong here, and say what to do about it",
        load: () => import("#doctor/command.ts"),
      },
      completionEntry(() => COMMANDS),
    ],
  },
];

/** Every command in the order of the help. */
export const COMMANDS: readonly CommandEntry[] = COMMAND_GROUPS.flatMap((group) => group.commands);
