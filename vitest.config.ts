import { defineConfig } from "vitest/config";

const setupFiles = ["test/support/seed.ts"];
/** What kills, spoils or draws wants the machine for itself. */
const ALONE = ["test/system/*crash*.test.ts", "test/system/faults.test.ts", "test/system/web/**/*.test.ts"];

/** Tests in one process run in parallel; then those that start processes, two at a time; then some one at a time. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/unit/**/*.test.ts"],
          setupFiles,
          testTimeout: 240_000,
          hookTimeout: 60_000,
          // Most of their time they wait.
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: "system",
          include: ["test/system/**/*.test.ts"],
          exclude: ALONE,
          setupFiles,
          testTimeout: 240_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: "alone",
          include: ALONE,
          setupFiles,
          testTimeout: 240_000,
          hookTimeout: 60_000,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
