// Figures for people to read.
import { operatorTexts } from "../texts/operator.js";

/** A number with as many digits as tell something. */
export function number(value: number): string {
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** A share of a processor. */
export const percent = (value: number): string => `${number(value * 100)} %`;

/** Bytes in the largest unit that fits. */
export function bytes(value: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, value > 0 ? Math.floor(Math.log10(value) / 3) : 0);
  return `${number(value / 1000 ** power)} ${units[power]}`;
}

/** A short time. */
export const seconds = (value: number): string => (value < 1 ? `${number(value * 1000)} ms` : `${number(value)} s`);

/** A long time, in its largest unit. */
export function duration(value: number): string {
  const units = operatorTexts.units;
  const steps = [
    [86_400, units.days],
    [3_600, units.hours],
    [60, units.minutes],
    [1, units.seconds],
  ] as const;
  const [size, unit] = steps.find(([length]) => Math.abs(value) >= 2 * length) ?? [1, units.seconds];
  return unit(Math.floor(value / size));
}
