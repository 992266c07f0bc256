export interface Tally {
  kills: number;
  moments: number;
  openings: number;
  unopened: number;
  points: Record<string, number>;
  terms: number;
  folders: number;
  answers: Record<string, number>;
  channels: Record<string, number>;
  events: number;
  notifications: number;
  closed: number;
  folded: number;
  audited: number;
  auditedBeside: number;
  backups: number;
  stale: number;
  sockets: number;
  frames: number;
  shownAgain: number;
  problems: string[];
}

export function newTally(): Tally;
