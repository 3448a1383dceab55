// Where models come from and where results go: memory, a Blob, or a file of Node.

const isNode = typeof process !== "undefined" && !!process.versions?.node && process.type !== "renderer";

/** A source of bytes: { size, read(from, out), slice(from, to), close() }. `slice` gives a part of the result: bytes or a Blob. */
export async function openSource(source) {
  if (source instanceof Uint8Array) return ofBytes(source);
  if (source instanceof ArrayBuffer) return ofBytes(new Uint8Array(source));
  if (ArrayBuffer.isView(source)) return ofBytes(new Uint8Array(source.buffer, source.byteOffset, source.byteLength));
  if (typeof Blob !== "undefined" && source instanceof Blob) return ofBlob(source);
  if (typeof source === "string" || source instanceof URL) {
    if (!isNode) throw new TypeError("a path names a file in Node only; pass the bytes or a Blob");
    return ofFile(source);
  }
  throw new TypeError("a model is a Uint8Array, an ArrayBuffer, a Blob or, in Node, a path");
}

function ofBytes(bytes) {
  return {
    kind: "bytes",
    size: bytes.length,
    read: (from, out) => out.set(bytes.subarray(from, from + out.length)),
    slice: (from, to) => bytes.subarray(from, to),
    close() {},
  };
}

/** A Worker of a browser reads ranges of a Blob while it waits; elsewhere the Blob is read as a whole first. */
async function ofBlob(blob) {
  const whole = typeof FileReaderSync === "undefined" ? new Uint8Array(await blob.arrayBuffer()) : null;
  const reader = whole ? null : new FileReaderSync();
  const piece = (from, to) => whole ? whole.subarray(from, to) : new Uint8Array(reader.readAsArrayBuffer(blob.slice(from, to)));
  return {
    kind: "blob",
    size: blob.size,
    read: (from, out) => out.set(piece(from, from + out.length)),
    slice: (from, to) => blob.slice(from, to),
    close() {},
  };
}

async function ofFile(path) {
  const fs = await import(/* @vite-ignore */ "node:fs");
  const file = fs.openSync(path, "r");
  const read = (from, out) => {
    for (let done = 0; done < out.length; ) {
      const got = fs.readSync(file, out, done, out.length - done, from + done);
      if (got === 0) throw new Error("the file was cut while it was being read");
      done += got;
    }
  };
  return {
    kind: "file",
    size: fs.fstatSync(file).size,
    read,
    slice(from, to) {
      const bytes = new Uint8Array(to - from);
      read(from, bytes);
      return bytes;
    },
    close: () => fs.closeSync(file),
  };
}

/** A result put together of parts, in the form of its source. */
export function assembled(parts, kind) {
  if (kind === "blob") return new Blob(parts, { type: "application/octet-stream" });
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
