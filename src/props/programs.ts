/** The programs of the props: files of this package, run by the Node that runs this. No text of anybody is part of them. */
import { join } from "node:path";
import { PACKAGE_ROOT } from "../platform/package_root.js";

/** What a program sees of the environment. */
const ENVIRONMENT = ["PATH", "TZ"] as const;

export function programOf(name: "documents" | "nightly_build") {
  return {
    command: process.execPath,
    args: [join(PACKAGE_ROOT, "dist", "props", "programs", `${name}.js`)],
    folder: PACKAGE_ROOT,
    environment: ENVIRONMENT,
  };
}
