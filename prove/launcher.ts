// How people start Grove.
import { fileURLToPath } from "node:url";

/** The launcher: it sets what bounds a server's memory, and then becomes the server. */
export const GROVE: string = fileURLToPath(new URL("../grove", import.meta.url));
