import type Database from "better-sqlite3";

export type Connection = Database.Database;
export type Statement = Database.Statement<unknown[]>;

/** `Tdgs`, so that another program's database is told from ours. */
export const APPLICATION_ID = 0x54646773;
