// The path of the program's launcher.
import { fileURLToPath } from "node:url";

/** The launcher: it sets the memory flags of a server, and then becomes the server. */
export const GROVE: string = fileURLToPath(new URL("../grove", import.meta.url));
