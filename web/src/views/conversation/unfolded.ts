/** What was unfolded in a conversation stays so while the page is open: lines that are out of view are not in the page. */
import { createContext, useContext, useState } from "react";

const unfolded = new Set<string>();

/** The line that something stands in; null: it is not kept. */
export const LineContext = createContext<string | null>(null);

export function unfold(name: string): void {
  unfolded.add(name);
}

/** `part`: which of the things in its line it is; `name`: if it is known by another than that. */
export function useUnfolded(part: string, name?: string): readonly [boolean, () => void] {
  const line = useContext(LineContext);
  const key = name ?? (line === null ? null : `${line} ${part}`);
  const [isOpen, setOpen] = useState(() => key !== null && unfolded.has(key));
  const toggle = () => {
    setOpen(!isOpen);
    if (key === null) return;
    if (isOpen) unfolded.delete(key);
    else unfolded.add(key);
  };
  return [isOpen, toggle];
}
