// Builds the console's pages into dist/web: static files that `grove admin` serves, split by route.
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compressed } from "./compress.ts";
import { themeCss } from "./theme-css.ts";

const here = fileURLToPath(new URL(".", import.meta.url));
const API = process.env["GROVE_CONSOLE"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  root: here,
  plugins: [react(), themeCss(), compressed(`${here}../dist/web`)],
  // A data: URL would need an exception in the Content-Security-Policy.
  build: {
    outDir: "../dist/web",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: "es2023",
    reportCompressedSize: false,
  },
  // `npm run dev:web` proxies to a running console.
  server: { proxy: { "/api": API, "/ws": { target: API, ws: true } } },
});
