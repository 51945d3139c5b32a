// A process that opens the storage named on its command line, prints so, and stays.
import { openTestStorage } from "./store.fixture.ts";

const storage = await openTestStorage(process.argv[2] ?? "");
process.stdout.write("open\n");
setInterval(() => storage.facts(), 1_000);
