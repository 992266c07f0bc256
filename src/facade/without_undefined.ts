/** What is given as undefined is not given. */
type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

export function withoutUndefined<T extends object>(input: T): Defined<T> {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)) as Defined<T>;
}
