// Where models come from and where results go: memory, a Blob, or a file of Node.

const isNode = typeof process !== "undefined" && !!process.versions?.node && process.type !== "renderer";

/** The name of a module of Node, which bundlers do not look for. */
const node = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);

/**
 * Opens a model or a data file: { kind, size, read(from, out), slice(from, to), close() }. `read` fills `out`. `slice` returns a part for a result: bytes,
 * a Blob, or for a file { read, from, to }.
 */
export async function openSource(source) {
  if (source instanceof ArrayBuffer) return ofBytes(new Uint8Array(source));
  if (ArrayBuffer.isView(source)) return ofBytes(new Uint8Array(source.buffer, source.byteOffset, source.byteLength));
  if (typeof Blob !== "undefined" && source instanceof Blob) return ofBlob(source);
  if (typeof source === "string" || source instanceof URL) {
    if (!isNode) throw new TypeError("only Node opens files by their paths; pass the bytes or a Blob");
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

/** Only Workers of browsers read ranges of a Blob synchronously. Elsewhere the Blob is read as a whole. */
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
  return openFileWith(await node("fs"), path);
}

/** Opens a file with Node's module `fs`. */
export function openFileWith(fs, path) {
  const file = fs.openSync(path, "r");
  const state = fs.fstatSync(file);
  if (!state.isFile()) {
    fs.closeSync(file);
    throw new Error(`'${path}' is no regular file`);
  }
  return {
    kind: "file",
    size: state.size,
    read(from, out) {
      for (let done = 0; done < out.length; ) {
        const got = fs.readSync(file, out, done, out.length - done, from + done);
        if (got === 0) throw new Error(`'${path}' was cut while it was read`);
        done += got;
      }
    },
    slice(from, to) {
      return { read: this.read, from, to };
    },
    close: () => fs.closeSync(file),
  };
}

/** The bytes of a part that is a range of a file. */
function bytesOf(part) {
  if (!part.read) return part;
  const bytes = new Uint8Array(part.to - part.from);
  part.read(part.from, bytes);
  return bytes;
}

/** Puts parts together: as a Blob, or as bytes. */
export function assembled(parts, kind) {
  if (kind === "blob") return new Blob(parts.map(bytesOf), { type: "application/octet-stream" });
  const length = (part) => part.read ? part.to - part.from : part.length;
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + length(part), 0));
  let at = 0;
  for (const part of parts) {
    const room = bytes.subarray(at, (at += length(part)));
    if (part.read) part.read(part.from, room);
    else room.set(part);
  }
  return bytes;
}

/** The bytes that are copied from file to file at a time. */
const PIECE = 4 << 20;

/**
 * Opens files of Node that take a result: { write(file, part), finish(names), discard() }. They have other names until all is written, so that a file is written
 * whole or not at all, and may be the one that is read.
 */
export async function openTarget(path) {
  const [fs, { dirname, join }] = [await node("fs"), await node("path")];
  const files = [];
  const temporary = (file) => join(dirname(path), `.onnx-slice-fold-${process.pid}-${Date.now()}-${file}.tmp`);
  const writeAll = (file, bytes) => {
    for (let done = 0; done < bytes.length; ) done += fs.writeSync(file, bytes, done);
  };
  const discard = () => {
    for (const open of files) {
      if (!open) continue;
      try { fs.closeSync(open.file); } catch { /* It is closed. */ }
      fs.rmSync(open.name, { force: true });
    }
  };
  return {
    write(number, part) {
      const name = files[number]?.name ?? temporary(number);
      const { file } = (files[number] ??= { name, file: fs.openSync(name, "wx") });
      if (!part.read) return writeAll(file, part);
      const buffer = new Uint8Array(Math.min(PIECE, part.to - part.from));
      for (let at = part.from; at < part.to; at += buffer.length) {
        const piece = buffer.subarray(0, Math.min(buffer.length, part.to - at));
        part.read(at, piece);
        writeAll(file, piece);
      }
    },
    finish(dataName) {
      // The data first: no model without its data.
      for (const [number, name] of [[1, dataName && join(dirname(path), dataName)], [0, path]]) {
        const open = files[number];
        if (!open) continue;
        fs.fsyncSync(open.file);
        fs.closeSync(open.file);
        fs.renameSync(open.name, name);
        files[number] = undefined;
      }
    },
    discard,
  };
}

/**
 * Finds data files next to the model at a path: below its directory, and by no way out of it. The result of the function is { path }, { reason } for a file that
 * must not be read, and null for a missing file.
 */
export async function filesBeside(path) {
  const [fs, { dirname, join, relative, isAbsolute }] = [await node("fs"), await node("path")];
  const kindOf = (state) => state.isDirectory() ? "a directory" : state.isFIFO() ? "a pipe" : "a socket or device";
  const quoted = (path) => `'${path.replace(/\p{Cc}/gu, "?")}'`;
  return (location) => {
    try {
      const root = fs.realpathSync(dirname(path));
      const real = fs.realpathSync(join(root, location));
      const way = relative(root, real);
      if (way.startsWith("..") || isAbsolute(way)) {
        return { reason: `is a symbolic link that leads to ${quoted(real)}, outside of ${quoted(root)}; if that file is to be read, pass it as externalData` };
      }
      const state = fs.statSync(real);
      if (!state.isFile()) return { reason: `is ${kindOf(state)}, not a regular file` };
      if (state.nlink > 1) return { reason: `has ${state.nlink} hard links, so it may belong to another file` };
      return { path: real };
    } catch (error) {
      if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
      return { reason: error.code === "ELOOP" ? "is a symbolic link that leads to itself" : error.message };
    }
  };
}

export { isNode };
