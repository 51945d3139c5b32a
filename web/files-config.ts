// Builds the page for files into dist/files: static files that `grove door` serves.
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compressed } from "./compress.ts";

const here = fileURLToPath(new URL("files/", import.meta.url));
const DOOR = process.env["GROVE_DOOR"] ?? "http://127.0.0.1:8070";

export default defineConfig({
  root: here,
  plugins: [react(), compressed(`${here}../../dist/files`)],
  build: {
    outDir: "../../dist/files",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: "es2023",
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": DOOR, "/sign-in": DOOR, "/sign-out": DOOR } },
});
