/**
 * What an event is about, for example a tool handle. Names are used again (a handle id is unique only among live
 * handles), so a subject may end in `#gen-N`, its generation: `h_3#gen-2` is the second life of `h_3`.
 */
const GENERATION = "#gen-";

export interface Subject {
  readonly name: string;
  readonly generation: number;
}

export function parseSubject(subject: string): Subject {
  const mark = subject.lastIndexOf(GENERATION);
  const digits = mark > 0 ? subject.slice(mark + GENERATION.length) : "";
  if (digits.length === 0 || digits.length > 15 || !/^[0-9]+$/.test(digits)) return { name: subject, generation: 0 };
  return { name: subject.slice(0, mark), generation: Number(digits) };
}
