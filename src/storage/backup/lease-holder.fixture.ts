// Holds the lease of a data directory until it is killed, like a backup that dies halfway.
import { join } from "node:path";
import { holdShared } from "#os/file-lock.ts";
import { BACKUP_LEASE_FILE } from "#storage/chunks/backup-layout.ts";

holdShared(join(process.argv[2] ?? "", BACKUP_LEASE_FILE));
process.stdout.write("held\n");
setInterval(() => undefined, 60_000);
