export interface Shown {
  readonly name: string;
  /** The address in the app. */
  readonly at: string;
}

export function furnish(call: (method: string, params?: object) => Promise<unknown>): Promise<Shown[]>;
