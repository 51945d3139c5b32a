// Checks that a FileServer's data folder is served with its recorded role and node id (D19).
import { commandsToServe, pastInWords, readPastRole, wasMember } from "#security/authority/node-role.ts";
import { type Check, failed, ok, warning } from "./finding.ts";

/** Checks that the folder is still served in its recorded role. */
export function roleCheck(folder: string): Check {
  const name = `role of ${folder}`;
  return {
    name,
    async run() {
      const past = await readPastRole(folder);
      const { role, joined, clusterId, hasKey } = past;
      const todo = `Serve it as it was: ${commandsToServe(past, folder)
        .map((command) => `'${command}'`)
        .join(", then ")}`;
      if (joined !== undefined && !hasKey)
        return [failed(name, `it was ${pastInWords(past)}, and its private key is not there`, todo)];
      if (clusterId !== undefined && !wasMember(past)) {
        return [
          warning(
            name,
            `it belongs to cluster ${clusterId}, and was served alone last: the cluster sends nobody here`,
            "Start it with -id and -metaserver as before, or leave it alone if that is meant.",
          ),
        ];
      }
      if (role === undefined && joined === undefined && clusterId !== undefined) {
        return [
          warning(
            name,
            `it belongs to cluster ${clusterId}, and nothing says as which node`,
            "Start it with the flags that it had; with the first start it writes them down.",
          ),
        ];
      }
      if (wasMember(past) || joined !== undefined) return [ok(name, `it is ${pastInWords(past)}`)];
      return [ok(name, "stands alone: it is in no cluster")];
    },
  };
}
