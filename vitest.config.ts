import { defineConfig } from "vitest/config";

/** Unit tests run in parallel; tests that start processes run one at a time, after them. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/unit/**/*.test.ts"],
          setupFiles: ["test/support/seed.ts"],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          // Most of their time they wait.
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: "system",
          include: ["test/system/**/*.test.ts"],
          setupFiles: ["test/support/seed.ts"],
          testTimeout: 240_000,
          hookTimeout: 60_000,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
