// A QR code (ISO/IEC 18004) of a text: byte mode, error correction of level M, versions 1 to 20, which
// hold 666 bytes: more than any address of one-time codes has.

// For each version, of level M: the codewords of error correction in each block, and the number of blocks.
const CORRECTION = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26];
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16];

/** The modules of a code, row by row: true is dark. */
export type Modules = readonly (readonly boolean[])[];

/** The code of a text; undefined if it is too long for one. */
export function qrCode(text: string): Modules | undefined {
  const bytes = new TextEncoder().encode(text);
  for (let version = 1; version <= BLOCKS.length; version += 1) {
    const lengthBits = version < 10 ? 8 : 16;
    if (4 + lengthBits + bytes.length * 8 > dataCodewords(version) * 8) continue;
    return draw(version, interleaved(version, encoded(version, lengthBits, bytes)));
  }
  return undefined;
}

const sizeOf = (version: number): number => version * 4 + 17;

/** All codewords of a version: the modules that no pattern uses, by eight. */
function allCodewords(version: number): number {
  let modules = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const count = Math.floor(version / 7) + 2;
    modules -= (25 * count - 10) * count - 55;
    if (version >= 7) modules -= 36;
  }
  return Math.floor(modules / 8);
}

const dataCodewords = (version: number): number =>
  allCodewords(version) - CORRECTION[version - 1]! * BLOCKS[version - 1]!;

/** The data of a code: mode, length, bytes, end, padding. */
function encoded(version: number, lengthBits: number, bytes: Uint8Array): number[] {
  const bits: number[] = [];
  const put = (value: number, count: number): void => {
    for (let at = count - 1; at >= 0; at -= 1) bits.push((value >> at) & 1);
  };
  put(4, 4);
  put(bytes.length, lengthBits);
  for (const byte of bytes) put(byte, 8);
  const capacity = dataCodewords(version) * 8;
  put(0, Math.min(4, capacity - bits.length));
  put(0, (8 - (bits.length % 8)) % 8);
  for (let pad = 0xec; bits.length < capacity; pad ^= 0xec ^ 0x11) put(pad, 8);
  const words: number[] = [];
  for (let at = 0; at < bits.length; at += 8)
    words.push(bits.slice(at, at + 8).reduce((word, bit) => (word << 1) | bit, 0));
  return words;
}

/** The blocks of the data and those of their correction, in turn. */
function interleaved(version: number, data: readonly number[]): number[] {
  const [length, count] = [CORRECTION[version - 1]!, BLOCKS[version - 1]!];
  const generator = generatorOf(length);
  const short = Math.floor(data.length / count);
  const long = data.length % count; // the last blocks have one more
  const blocks: number[][] = [];
  for (let block = 0, at = 0; block < count; block += 1) {
    const size = short + (block >= count - long ? 1 : 0);
    blocks.push(data.slice(at, at + size));
    at += size;
  }
  const corrections = blocks.map((block) => remainder(block, generator));
  const found: number[] = [];
  for (let at = 0; at <= short; at += 1) for (const block of blocks) if (at < block.length) found.push(block[at]!);
  for (let at = 0; at < length; at += 1) for (const block of corrections) found.push(block[at]!);
  return found;
}

/** The product in the field of 256 elements, modulo x^8 + x^4 + x^3 + x^2 + 1. */
function times(one: number, other: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1)
    product = (product << 1) ^ ((product >> 7) * 0x11d) ^ (((other >> bit) & 1) * one);
  return product;
}

/** The generator polynomial of Reed and Solomon of this degree, without its first coefficient. */
function generatorOf(degree: number): number[] {
  const found = new Array<number>(degree).fill(0);
  found[degree - 1] = 1;
  for (let at = 0, root = 1; at < degree; at += 1, root = times(root, 2)) {
    for (let place = 0; place < degree; place += 1) found[place] = times(found[place]!, root) ^ (found[place + 1] ?? 0);
  }
  return found;
}

function remainder(data: readonly number[], generator: readonly number[]): number[] {
  const found = new Array<number>(generator.length).fill(0);
  for (const word of data) {
    const factor = word ^ found.shift()!;
    found.push(0);
    generator.forEach((coefficient, at) => {
      found[at]! ^= times(coefficient, factor);
    });
  }
  return found;
}

const MASKS: readonly ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

/** Draw the patterns and the codewords, with the mask that is easiest to read. */
function draw(version: number, words: readonly number[]): Modules {
  const size = sizeOf(version);
  const modules = Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
  const isPattern = Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
  const set = (x: number, y: number, isDark: boolean): void => {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    modules[y]![x] = isDark;
    isPattern[y]![x] = true;
  };
  const square = (x: number, y: number, reach: number, isDark: (distance: number) => boolean): void => {
    for (let down = -reach; down <= reach; down += 1)
      for (let right = -reach; right <= reach; right += 1)
        set(x + right, y + down, isDark(Math.max(Math.abs(down), Math.abs(right))));
  };
  for (let at = 0; at < size; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [x, y] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ] as const)
    square(x, y, 4, (distance) => distance !== 2 && distance !== 4);
  const places = alignments(version);
  const last = places.length - 1;
  for (const [column, x] of places.entries())
    for (const [row, y] of places.entries()) {
      const isCorner = (column === 0 && row === 0) || (column === 0 && row === last) || (column === last && row === 0);
      if (!isCorner) square(x, y, 2, (distance) => distance !== 1);
    }
  if (version >= 7) {
    const told = withCheck(version, 12, 0x1f25);
    for (let at = 0; at < 18; at += 1) {
      const [far, near] = [size - 11 + (at % 3), Math.floor(at / 3)];
      set(far, near, ((told >> at) & 1) === 1);
      set(near, far, ((told >> at) & 1) === 1);
    }
  }
  const drawFormat = (mask: number): void => {
    const told = withCheck(mask, 10, 0x537) ^ 0x5412; // level M is 00
    const bit = (at: number): boolean => ((told >> at) & 1) === 1;
    for (let at = 0; at < 15; at += 1) {
      set(8, at < 6 ? at : at < 8 ? at + 1 : size - 15 + at, bit(at));
      set(at < 8 ? size - 1 - at : at === 8 ? 7 : 14 - at, 8, bit(at));
    }
    set(8, size - 8, true);
  };
  drawFormat(0); // so that their modules count as patterns
  let bit = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step += 1) {
      const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (isPattern[y]![x]) continue;
        modules[y]![x] = (((words[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1) === 1;
        bit += 1;
      }
    }
  }
  const masked = MASKS.map((mask, at) => {
    drawFormat(at);
    return modules.map((row, y) => row.map((isDark, x) => isDark !== (!isPattern[y]![x] && mask(x, y))));
  });
  return masked.reduce((best, one) => (penalty(one) < penalty(best) ? one : best));
}

/** Where the centres of the small squares are, in both directions. */
function alignments(version: number): number[] {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.ceil((sizeOf(version) - 13) / (2 * count - 2)) * 2;
  const found = [6];
  for (let at = sizeOf(version) - 7; found.length < count; at -= step) found.splice(1, 0, at);
  return found;
}

/** A value with the bits that check it, by the code of Bose, Chaudhuri and Hocquenghem. */
function withCheck(value: number, bits: number, generator: number): number {
  let rest = value;
  for (let at = 0; at < bits; at += 1) rest = (rest << 1) ^ ((rest >> (bits - 1)) * generator);
  return (value << bits) | rest;
}

/** How hard a code is to read, by the four rules of the standard. */
function penalty(modules: Modules): number {
  const columns = modules.map((_, x) => modules.map((row) => row[x]!));
  let found = 0;
  for (const line of [...modules, ...columns]) {
    const text = line.map((isDark) => (isDark ? "1" : "0")).join("");
    for (const [run] of text.matchAll(/0{5,}|1{5,}/g)) found += run.length - 2;
    found += 40 * [...text.matchAll(/(?=10111010000|00001011101)/g)].length;
  }
  let dark = 0;
  for (const [y, row] of modules.entries())
    for (const [x, isDark] of row.entries()) {
      dark += Number(isDark);
      const below = modules[y + 1];
      if (below && x + 1 < row.length && isDark === row[x + 1] && isDark === below[x] && isDark === below[x + 1])
        found += 3;
    }
  const share = (dark * 100) / modules.length ** 2;
  return found + Math.floor(Math.abs(share - 50) / 5) * 10;
}
