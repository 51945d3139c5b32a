// The paths of the client's own files: profile, credentials, routes, the current folder, history.
import { join } from "node:path";

/** Paths of the client's own files. */
export interface ConfigFolder {
  readonly path: string;
  /** Settings of the cluster (decision D23). */
  readonly profile: string;
  /** A stable random id of this installation; names sessions in lists, authorizes nothing (D23). */
  readonly installationId: string;
  /** ID token and sessions, each file 0600. */
  readonly credentials: string;
  readonly routes: string;
  /** The folder that relative paths start from. */
  readonly place: string;
  readonly shellHistory: string;
  /** Records of unfinished uploads. */
  readonly uploads: string;
  /** Records of whole folders in transfer. */
  readonly transfers: string;
}

/** The folder that `GROVE_CONFIG_DIR` names, else the system's configuration folder (XDG on Linux). */
export async function findConfigFolder(
  env: Readonly<Record<string, string | undefined>>,
): Promise<ConfigFolder> {
  const chosen = env["GROVE_CONFIG_DIR"];
  if (chosen !== undefined && chosen !== "") return configFolderAt(chosen);
  const { default: envPaths } = await import("env-paths");
  return configFolderAt(envPaths("grove", { suffix: "" }).config);
}

/** The files of a configuration folder. */
export function configFolderAt(path: string): ConfigFolder {
  return {
    path,
    profile: join(path, "profile.json"),
    installationId: join(path, "installation-id"),
    credentials: join(path, "credentials"),
    routes: join(path, "routes.json"),
    place: join(path, "place.json"),
    shellHistory: join(path, "shell-history"),
    uploads: join(path, "uploads"),
    transfers: join(path, "transfers"),
  };
}
