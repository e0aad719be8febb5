/** Bytes as this format has them. */
export type Bytes = Uint8Array<ArrayBuffer>;
