// The table of Grove's commands: each with one sentence, and its module imported only when it runs.
import type { Command } from "commander";

/** The export of a command's module. */
export interface CommandModule {
  /** Makes the parser of this command: options, help text with examples, action. */
  readonly command: () => Command;
}

/** One row of `grove --help`. */
export interface CommandEntry {
  readonly name: string;
  /** One sentence without a full stop for `grove --help`. */
  readonly summary: string;
  /** True for a process that runs until it is stopped: a crash prints its stack, as only the log remains. */
  readonly server?: true;
  /** True for a command that moves whole files: its heap is configured like a server's. */
  readonly content?: true;
  readonly load: () => Promise<CommandModule>;
}

/** A heading of `grove --help` with its commands, in a newcomer's order of need. */
export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly CommandEntry[];
}

/** Every command of the program (design, "Processes"). */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    title: "Start here",
    commands: [
      {
        name: "up",
        summary: "Run a whole cluster on this machine, with demo users to sign in as",
        server: true,
        load: () => import("#devcluster/command.ts"),
      },
      {
        name: "login",
        summary: "Sign in with your identity provider",
        load: () => import("#client/commands/login-command.ts"),
      },
      {
        name: "whoami",
        summary: "Show who is signed in, and until when",
        load: () => import("#client/commands/whoami-command.ts"),
      },
      {
        name: "sessions",
        summary: "List the sessions that are open in your name",
        load: () => import("#client/commands/sessions-command.ts"),
      },
      {
        name: "logout",
        summary: "Sign out and forget the session",
        load: () => import("#client/commands/logout-command.ts"),
      },
    ],
  },
  {
    title: "Files",
    commands: [
      {
        name: "ls",
        summary: "List a folder",
        load: () => import("#client/commands/ls-command.ts"),
      },
      {
        name: "put",
        summary: "Upload files and whole folders",
        content: true,
        load: () => import("#client/commands/put-command.ts"),
      },
      {
        name: "get",
        summary: "Download files and whole folders",
        content: true,
        load: () => import("#client/commands/get-command.ts"),
      },
      {
        name: "cat",
        summary: "Print a file",
        content: true,
        load: () => import("#client/commands/cat-command.ts"),
      },
      {
        name: "write",
        summary: "Write what comes on standard input into a file",
        content: true,
        load: () => import("#client/commands/write-command.ts"),
      },
      {
        name: "stat",
        summary: "Show all there is to know about a file or folder",
        load: () => import("#client/commands/stat-command.ts"),
      },
      {
        name: "mkdir",
        summary: "Make a folder",
        load: () => import("#client/commands/mkdir-command.ts"),
      },
      {
        name: "cp",
        summary: "Copy files and folders on the cluster",
        load: () => import("#client/commands/cp-command.ts"),
      },
      {
        name: "mv",
        summary: "Move or rename",
        load: () => import("#client/commands/mv-command.ts"),
      },
      {
        name: "rm",
        summary: "Delete files and folders",
        load: () => import("#client/commands/rm-command.ts"),
      },
      {
        name: "share",
        summary: "Let other users read and write a folder of yours",
        load: () => import("#client/commands/share-command.ts"),
      },
      {
        name: "unshare",
        summary: "End that",
        load: () => import("#client/commands/unshare-command.ts"),
      },
      {
        name: "trash",
        summary: "List what was deleted, bring it back, or empty the trash",
        load: () => import("#client/commands/trash-command.ts"),
      },
      {
        name: "cd",
        summary: "Change the folder that relative paths start from",
        load: () => import("#client/commands/cd-command.ts"),
      },
      {
        name: "pwd",
        summary: "Print that folder",
        load: () => import("#client/commands/pwd-command.ts"),
      },
      {
        name: "roots",
        summary: "List the roots you can reach, and the servers that hold them",
        load: () => import("#client/commands/roots-command.ts"),
      },
      {
        name: "quota",
        summary: "Show how much of your quota is used",
        load: () => import("#client/commands/quota-command.ts"),
      },
      {
        name: "why",
        summary: "Show why you may read, write or delete something, or why not",
        load: () => import("#client/commands/why-command.ts"),
      },
      {
        name: "shell",
        summary: "Type the commands above one after another, with one connection",
        content: true,
        load: () => import("#client/commands/shell-command.ts"),
      },
    ],
  },
  {
    title: "Running a cluster",
    commands: [
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
        name: "node",
        summary: "Bring a new machine into the cluster",
        load: () => import("#metaserver/process/node-command.ts"),
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
      {
        name: "completion",
        summary: "Print the completion script for bash, zsh or fish",
        load: async () => {
          const { completionOf } = await import("#client/commands/completion-command.ts");
          return { command: () => completionOf(() => COMMANDS) };
        },
      },
    ],
  },
];

/** Every command in the order of the help. */
export const COMMANDS: readonly CommandEntry[] = COMMAND_GROUPS.flatMap((group) => group.commands);
