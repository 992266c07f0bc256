// The migrations are read from beside the compiled code.
import { cpSync } from "node:fs";

cpSync("src/store/sqlite/migrations", "dist/store/sqlite/migrations", { recursive: true });
