// Metrics in the text format of Prometheus, and what they say about the time between two readings.

/** The samples of one reading: the value of each series by its name and its labels. */
export type Samples = ReadonlyMap<string, number>;

/** What `/ready` says: the checks by name, and whether each is good. */
export type Checks = Readonly<Record<string, boolean>>;

/** One reading of the server. */
export interface Reading {
  /** When it was read, in milliseconds since 1970. */
  readonly at: number;
  readonly samples: Samples;
  readonly checks: Checks;
}

/** Parse the text format. Lines that are no samples are left out. */
export function parse(text: string): Samples {
  const found = new Map<string, number>();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*(?:\{[^}]*\})?) (\S+)$/.exec(line);
    const value = Number(match?.[2]);
    if (match?.[1] !== undefined && Number.isFinite(value)) found.set(match[1], value);
  }
  return found;
}

/** The value of a label of the only series of a name. */
export function label(samples: Samples, name: string, wanted: string): string | undefined {
  const series = [...samples.keys()].find((key) => key.startsWith(`${name}{`));
  return series === undefined ? undefined : new RegExp(`[{,]${wanted}="([^"]*)"`).exec(series)?.[1];
}

/** The sum of the series of a name; of those whose labels match. Undefined where there is none. */
export function sum(samples: Samples, name: string, labels = /(?:)/): number | undefined {
  let total: number | undefined;
  for (const [key, value] of samples) {
    const [series, rest = ""] = key.split("{", 2);
    if (series === name && labels.test(rest)) total = (total ?? 0) + value;
  }
  return total;
}

/** By how much a counter grew each second between two readings. A restarted server begins at nought again. */
export function rate(before: Reading | undefined, now: Reading, name: string, labels?: RegExp): number | undefined {
  const seconds = before ? (now.at - before.at) / 1000 : 0;
  const old = before && sum(before.samples, name, labels);
  const value = sum(now.samples, name, labels);
  if (value === undefined || old === undefined || seconds <= 0) return undefined;
  return (value >= old ? value - old : value) / seconds;
}

/** The time within which a share of the requests between two readings was answered, in seconds: a bound of a bucket. */
export function quantile(before: Reading | undefined, now: Reading, name: string, share: number): number | undefined {
  const counts = new Map<number, number>();
  for (const [reading, sign] of [
    [now, 1],
    [before, -1],
  ] as const) {
    for (const [key, value] of reading?.samples ?? []) {
      const bound = key.startsWith(`${name}_bucket{`) && /le="([^"]+)"/.exec(key)?.[1];
      if (bound)
        counts.set(
          Number(bound.replace("+Inf", "Infinity")),
          (counts.get(Number(bound.replace("+Inf", "Infinity"))) ?? 0) + sign * value,
        );
    }
  }
  const bounds = [...counts].sort(([one], [other]) => one - other);
  const total = bounds.at(-1)?.[1] ?? 0;
  if (!before || total <= 0) return undefined;
  const found = bounds.find(([, count]) => count >= share * total)?.[0];
  return found === Infinity ? bounds.at(-2)?.[0] : found;
}
