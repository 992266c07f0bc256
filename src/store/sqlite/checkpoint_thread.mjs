/**
 * A thread with a connection of its own: whenever it is told to, it copies what the write-ahead log holds into the database. Plain
 * JavaScript, since a thread is started from a file as it is, beside the sources as beside what is built of them.
 */
import { parentPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";

const connection = new Database(workerData.file, { fileMustExist: true, timeout: 0 });
// As the writer: the log is on disk before what it holds is copied, and the copy is before the log is used anew.
connection.pragma("synchronous = FULL");
connection.pragma("wal_autocheckpoint = 0");
const checkpoint = connection.prepare("PRAGMA wal_checkpoint(PASSIVE)");

parentPort.on("message", (message) => {
  if (message === "end") {
    connection.close();
    parentPort.close();
    return;
  }
  try {
    checkpoint.get();
  } catch {
    // The writer does it by itself when the log has become long, and sees what is wrong.
  }
  parentPort.postMessage("done");
});
