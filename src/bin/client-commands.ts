// The commands that need a cluster's address alone: the whole of `grove-client`, and a part of `grove`.
import type { CommandEntry, CommandGroup } from "./command-table.ts";

/** Signing in and out. */
export const SIGN_IN_COMMANDS: readonly CommandEntry[] = [
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
    name: "app-password",
    summary: "Make passwords for programs that reach your files by WebDAV",
    load: () => import("#client/commands/app-password-command.ts"),
  },
  {
    name: "browser",
    summary: "List the browsers in which you are signed in, and sign them out",
    load: () => import("#client/commands/browser-command.ts"),
  },
  {
    name: "notices",
    summary: "Turn notices about your quota, trash and sign-ins off and on",
    load: () => import("#client/commands/notices-command.ts"),
  },
  {
    name: "logout",
    summary: "Sign out and forget the session",
    load: () => import("#client/commands/logout-command.ts"),
  },
];

/** Everything about files. */
export const FILE_COMMANDS: readonly CommandEntry[] = [
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
    name: "import",
    summary: "Bring in files from a folder, SFTP, WebDAV or S3",
    content: true,
    load: () => import("#client/import/import-command.ts"),
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
    name: "group",
    summary: "Groups of people who share a root",
    load: () => import("#client/administration/group-command.ts"),
  },
  {
    name: "unshare",
    summary: "End that",
    load: () => import("#client/commands/unshare-command.ts"),
  },
  {
    name: "link",
    summary: "Let people without an account read a folder or drop files",
    load: () => import("#client/commands/link-command.ts"),
  },
  {
    name: "unlock",
    summary: "List or end locks that programs hold while people edit",
    load: () => import("#client/commands/unlock-command.ts"),
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
];

/** Completion for a program of these commands. */
export const completionEntry = (commands: () => readonly CommandEntry[]): CommandEntry => ({
  name: "completion",
  summary: "Print the completion script for bash, zsh or fish",
  load: async () => {
    const { completionOf } = await import("#client/commands/completion-command.ts");
    return { command: () => completionOf(commands) };
  },
});

/** Every command of the program that is the client alone. */
export const CLIENT_GROUPS: readonly CommandGroup[] = [
  { title: "Start here", commands: SIGN_IN_COMMANDS },
  { title: "Files", commands: FILE_COMMANDS },
  {
    title: "More",
    commands: [completionEntry(() => CLIENT_GROUPS.flatMap((group) => group.commands))],
  },
];
