// Argon2id (RFC 9106), version 0x13, one lane, 32 bytes: WebCrypto has none.
// A word of 64 bits is two of 32 here, the low one first.

// BLAKE2b (RFC 7693)
const MASK = (1n << 64n) - 1n;
const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const SIGMA = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4], [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13], [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11], [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5], [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
const right = (x, by) => ((x >> by) | (x << (64n - by))) & MASK;
const blake2b = (input, length) => {
  const h = [...IV];
  h[0] ^= 0x01010000n ^ BigInt(length);
  const blocks = Math.max(1, Math.ceil(input.length / 128));
  const padded = Buffer.alloc(blocks * 128);
  padded.set(input);
  for (let at = 0; at < blocks; at += 1) {
    const m = Array.from({ length: 16 }, (_, i) => padded.readBigUInt64LE(at * 128 + i * 8));
    const isLast = at === blocks - 1;
    const v = [...h, ...IV];
    v[12] ^= BigInt(isLast ? input.length : (at + 1) * 128);
    if (isLast) v[14] ^= MASK;
    const g = (a, b, c, d, x, y) => {
      v[a] = (v[a] + v[b] + x) & MASK; v[d] = right(v[d] ^ v[a], 32n);
      v[c] = (v[c] + v[d]) & MASK; v[b] = right(v[b] ^ v[c], 24n);
      v[a] = (v[a] + v[b] + y) & MASK; v[d] = right(v[d] ^ v[a], 16n);
      v[c] = (v[c] + v[d]) & MASK; v[b] = right(v[b] ^ v[c], 63n);
    };
    for (let round = 0; round < 12; round += 1) {
      const s = SIGMA[round % 10];
      for (let i = 0; i < 4; i += 1) g(i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
      for (let i = 0; i < 4; i += 1) {
        g(i, 4 + ((i + 1) % 4), 8 + ((i + 2) % 4), 12 + ((i + 3) % 4), m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
      }
    }
    for (let i = 0; i < 8; i += 1) h[i] ^= v[i] ^ v[i + 8];
  }
  const out = Buffer.alloc(64);
  h.forEach((word, i) => out.writeBigUInt64LE(word, i * 8));
  return out.subarray(0, length);
};
const le32 = (n) => { const out = Buffer.alloc(4); out.writeUInt32LE(n); return out; };
// H': a hash of any length.
const long = (length, input) => {
  const first = Buffer.concat([le32(length), input]);
  if (length <= 64) return blake2b(first, length);
  const parts = [];
  let v = blake2b(first, 64);
  let left = length;
  while (left > 64) {
    parts.push(v.subarray(0, 32));
    left -= 32;
    v = blake2b(v, left > 64 ? 64 : left);
  }
  return Buffer.concat([...parts, v]);
};

// The permutation: BLAKE2b's, with a product of the low halves added.
const SCRATCH = new Int32Array(256);
const mixed = new Int32Array(256);
// The upper half of the product of two words of 32 bits.
const upper = (x, y) => {
  const x0 = x & 0xffff, x1 = x >>> 16, y0 = y & 0xffff, y1 = y >>> 16;
  const middle = (Math.imul(x1, y0) + (Math.imul(x0, y0) >>> 16)) | 0;
  const cross = (Math.imul(x0, y1) + (middle & 0xffff)) | 0;
  return (Math.imul(x1, y1) + (middle >>> 16) + (cross >>> 16)) | 0;
};
// Four times a += b + 2 * low(a) * low(b), and d is turned; written out, because this is where the time goes.
const half = (v, a, b, c, d) => {
  let a0 = v[a] | 0, a1 = v[a + 1] | 0, b0 = v[b] | 0, b1 = v[b + 1] | 0;
  let c0 = v[c] | 0, c1 = v[c + 1] | 0, d0 = v[d] | 0, d1 = v[d + 1] | 0;
  let low, sum, x, y;
  low = Math.imul(a0, b0); sum = (a0 >>> 0) + (b0 >>> 0) + ((low << 1) >>> 0);
  a1 = (a1 + b1 + ((upper(a0, b0) << 1) | (low >>> 31)) + ((sum / 4294967296) | 0)) | 0; a0 = sum | 0;
  x = d1 ^ a1; d1 = d0 ^ a0; d0 = x;
  low = Math.imul(c0, d0); sum = (c0 >>> 0) + (d0 >>> 0) + ((low << 1) >>> 0);
  c1 = (c1 + d1 + ((upper(c0, d0) << 1) | (low >>> 31)) + ((sum / 4294967296) | 0)) | 0; c0 = sum | 0;
  x = b0 ^ c0; y = b1 ^ c1; b0 = (x >>> 24) | (y << 8); b1 = (y >>> 24) | (x << 8);
  low = Math.imul(a0, b0); sum = (a0 >>> 0) + (b0 >>> 0) + ((low << 1) >>> 0);
  a1 = (a1 + b1 + ((upper(a0, b0) << 1) | (low >>> 31)) + ((sum / 4294967296) | 0)) | 0; a0 = sum | 0;
  x = d0 ^ a0; y = d1 ^ a1; d0 = (x >>> 16) | (y << 16); d1 = (y >>> 16) | (x << 16);
  low = Math.imul(c0, d0); sum = (c0 >>> 0) + (d0 >>> 0) + ((low << 1) >>> 0);
  c1 = (c1 + d1 + ((upper(c0, d0) << 1) | (low >>> 31)) + ((sum / 4294967296) | 0)) | 0; c0 = sum | 0;
  x = b0 ^ c0; y = b1 ^ c1; b0 = (x << 1) | (y >>> 31); b1 = (y << 1) | (x >>> 31);
  v[a] = a0; v[a + 1] = a1; v[b] = b0; v[b + 1] = b1; v[c] = c0; v[c + 1] = c1; v[d] = d0; v[d + 1] = d1;
};
const permute = (v, w) => {
  half(v, w[0], w[4], w[8], w[12]); half(v, w[1], w[5], w[9], w[13]);
  half(v, w[2], w[6], w[10], w[14]); half(v, w[3], w[7], w[11], w[15]);
  half(v, w[0], w[5], w[10], w[15]); half(v, w[1], w[6], w[11], w[12]);
  half(v, w[2], w[7], w[8], w[13]); half(v, w[3], w[4], w[9], w[14]);
};
const ROWS = Array.from({ length: 8 }, (_, i) => Array.from({ length: 16 }, (_, j) => 2 * (16 * i + j)));
const COLUMNS = Array.from({ length: 8 }, (_, i) =>
  Array.from({ length: 16 }, (_, j) => 2 * (2 * i + 16 * (j >> 1) + (j & 1))));
const compress = (into, x, y, over) => {
  for (let i = 0; i < 256; i += 1) { SCRATCH[i] = x[i] ^ y[i]; mixed[i] = SCRATCH[i]; }
  for (const row of ROWS) permute(mixed, row);
  for (const column of COLUMNS) permute(mixed, column);
  for (let i = 0; i < 256; i += 1) into[i] = SCRATCH[i] ^ mixed[i] ^ (over ? into[i] : 0);
};

export const argon2id = (password, salt, memory, passes) => {
  const texts = [password, salt, [], []].flatMap((part) => [le32(part.length), Buffer.from(part)]);
  const start = blake2b(Buffer.concat([1, 32, memory, passes, 0x13, 2].map(le32).concat(texts)), 64);
  const quarter = Math.floor(memory / 4);
  const length = quarter * 4;
  const blocks = new Uint32Array(length * 256);
  const block = (at) => blocks.subarray(at * 256, at * 256 + 256);
  for (const at of [0, 1]) {
    const bytes = long(1024, Buffer.concat([start, le32(at), le32(0)]));
    for (let i = 0; i < 256; i += 1) blocks[at * 256 + i] = bytes.readUInt32LE(i * 4);
  }
  const zero = new Uint32Array(256);
  const input = new Uint32Array(256);
  const addresses = new Uint32Array(256);
  for (let pass = 0; pass < passes; pass += 1) {
    for (let slice = 0; slice < 4; slice += 1) {
      const independent = pass === 0 && slice < 2;
      if (independent) {
        input.fill(0);
        [pass, 0, slice, length, passes, 2].forEach((value, i) => { input[2 * i] = value; });
      }
      const next = () => { input[12] += 1; compress(addresses, zero, input, false); compress(addresses, zero, addresses, false); };
      const from = pass === 0 && slice === 0 ? 2 : 0;
      if (independent && from === 2) next();
      for (let index = from; index < quarter; index += 1) {
        const at = slice * quarter + index;
        const before = at === 0 ? length - 1 : at - 1;
        if (independent && index % 128 === 0) next();
        const chance = independent ? addresses[2 * (index % 128)] : blocks[before * 256];
        const area = (pass === 0 ? slice * quarter : length - quarter) + index - 1;
        const square = Number((BigInt(chance) * BigInt(chance)) >> 32n);
        const relative = area - 1 - Number((BigInt(area) * BigInt(square)) >> 32n);
        const first = pass === 0 || slice === 3 ? 0 : (slice + 1) * quarter;
        compress(block(at), block(before), block((first + relative) % length), pass > 0);
      }
    }
  }
  const last = Buffer.alloc(1024);
  block(length - 1).forEach((word, i) => last.writeUInt32LE(word, i * 4));
  return new Uint8Array(long(32, last));
};
