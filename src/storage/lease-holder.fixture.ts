// Holds the lease of a data directory until it is killed, as a backup does that dies in its middle.
import { join } from "node:path";
import { BACKUP_LEASE_FILE } from "./backup-layout.ts";
import { holdShared } from "./shared-lock.ts";

holdShared(join(process.argv[2] ?? "", BACKUP_LEASE_FILE));
process.stdout.write("held\n");
setInterval(() => undefined, 60_000);
