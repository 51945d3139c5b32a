// Holds the lease of a data directory until it is killed, as a backup does that dies in its middle.
import { join } from "node:path";
import { holdShared } from "#os/file-lock.ts";
import { BACKUP_LEASE_FILE } from "#storage/chunks/backup-layout.ts";

holdShared(join(process.argv[2] ?? "", BACKUP_LEASE_FILE));
process.stdout.write("held\n");
setInterval(() => undefined, 60_000);
