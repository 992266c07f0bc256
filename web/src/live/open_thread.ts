/** Which conversation the page shows, by its address; null if none. */
export function openThread(location: string): string | null {
  const [, place, id] = location.split("/");
  if (place !== "threads" || id === undefined || id === "") return null;
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

export function openThreadNow(): string | null {
  return openThread(location.hash.slice(1));
}

export function threadPath(thread_id: string): string {
  return `/threads/${encodeURIComponent(thread_id)}`;
}
