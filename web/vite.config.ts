import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const PROGRAM = process.env["TIDINGS_URL"] ?? "http://127.0.0.1:4747";

/** `npx vite web` serves it while it is written, in front of a `tidings serve` that runs beside it. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  resolve: { alias: { "tidings/client": new URL("../dist/client/index.js", import.meta.url).pathname } },
  // The server puts a new one in its place with every answer.
  html: { cspNonce: "TIDINGS_NONCE" },
  build: {
    outDir: "../dist/web",
    emptyOutDir: true,
    target: "es2023",
    license: { fileName: "LICENSES.md" },
    chunkSizeWarningLimit: 700,
    // An image in a style would be one that the policy has no word for.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/rpc": PROGRAM, "/v1": PROGRAM, "/ws": { target: PROGRAM, ws: true } } },
});
