export const TURN_POINTS: readonly string[];
export const REQUEST_SENT: string;
export function runAgentFolder(
  kills: readonly { readonly point: string; readonly passage: number }[],
): Promise<{ problems: string[]; met: string[]; promised: number }>;
