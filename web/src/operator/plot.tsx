// A small plot, drawn by hand: one line over the last minutes.
import { operatorTexts } from "../texts/operator.js";

const WIDTH = 240;
const HEIGHT = 56;

interface PlotProps {
  label: string;
  /** A value for each reading; undefined where there was none. */
  values: readonly (number | undefined)[];
  format: (value: number) => string;
}

/** A figure with its course. Who cannot see the line hears the lowest and the highest value. */
export function Plot({ label, values, format }: PlotProps) {
  const known = values.filter((value) => value !== undefined);
  const now = values.at(-1);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return (
    <div class="figure">
      <h3>{label}</h3>
      <p class="value">{now === undefined ? operatorTexts.unknown : format(now)}</p>
      {known.length > 1 && (
        <svg
          class="plot"
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={operatorTexts.course(label, format(low), format(high))}
        >
          <path class="area" d={line(values, high, true)} />
          <path class="line" d={line(values, high, false)} vector-effect="non-scaling-stroke" />
        </svg>
      )}
    </div>
  );
}

/** The path through the values, from the left edge to the right one, over nought. It has a gap where a value is missing. */
function line(values: readonly (number | undefined)[], high: number, isArea: boolean): string {
  const top = high * 1.25 || 1;
  const point = (value: number, at: number): string =>
    `${((at / (values.length - 1)) * WIDTH).toFixed(1)} ${(HEIGHT - 2 - (value / top) * (HEIGHT - 4)).toFixed(1)}`;
  let path = "";
  let first: number | undefined;
  values.forEach((value, at) => {
    if (value === undefined) return;
    const isNew = values[at - 1] === undefined;
    if (isNew) first = at;
    path += isNew ? `M${point(value, at)}` : `L${point(value, at)}`;
    if (isArea && values[at + 1] === undefined && first !== undefined) {
      const x = (index: number): string => ((index / (values.length - 1)) * WIDTH).toFixed(1);
      path += `L${x(at)} ${HEIGHT}L${x(first)} ${HEIGHT}Z`;
    }
  });
  return path;
}
