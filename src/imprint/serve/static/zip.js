/** Zip archives, such as a saved examples.zip, as files with paths. */

const END = 0x06054b50;
const LONGEST_END = 65557; // bytes of the last record with the longest comment
const LARGEST = 32 << 20; // bytes of one file, the maximum of the server
const UNKNOWN = 0xffffffff; // a field that only the 64-bit format fills

/** The files of an archive, stored or deflated: a list of {file, path}, folders left out. */
export async function unzipped(archive) {
  const tail = new DataView(await archive.slice(Math.max(0, archive.size - LONGEST_END)).arrayBuffer());
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== END) end -= 1;
  if (end < 0) throw new Error(`${archive.name ?? "This file"} is not a zip archive.`);
  const start = tail.getUint32(end + 16, true);
  if (start === UNKNOWN) throw new Error(`${archive.name ?? "This archive"} is too large: unpack it and add the folder.`);
  const list = new DataView(await archive.slice(start, start + tail.getUint32(end + 12, true)).arrayBuffer());
  const files = [];
  let at = 0;
  for (let n = tail.getUint16(end + 10, true); n > 0; n -= 1) {
    const [name, extra, comment] = [28, 30, 32].map((offset) => list.getUint16(at + offset, true));
    const path = new TextDecoder().decode(new Uint8Array(list.buffer, at + 46, name));
    const entry = { method: list.getUint16(at + 10, true), packed: list.getUint32(at + 20, true), size: list.getUint32(at + 24, true), offset: list.getUint32(at + 42, true) };
    if (!path.endsWith("/") && entry.size <= LARGEST) files.push({ path, file: await content(archive, path, entry) });
    at += 46 + name + extra + comment;
  }
  return files;
}

async function content(archive, path, { method, packed, offset }) {
  const head = new DataView(await archive.slice(offset, offset + 30).arrayBuffer());
  const start = offset + 30 + head.getUint16(26, true) + head.getUint16(28, true);
  const raw = archive.slice(start, start + packed);
  const name = path.split("/").at(-1);
  if (method === 0) return new File([raw], name);
  if (method !== 8) throw new Error(`${path} is packed in a way that browsers do not read: unpack the archive and add the folder.`);
  return new File([await new Response(raw.stream().pipeThrough(new DecompressionStream("deflate-raw"))).blob()], name);
}

/** The rows of a table in the CSV format, each as an object by the names of the first row. */
export function table(text) {
  const rows = [[""]];
  for (const [part] of text.replace(/^\ufeff/, "").matchAll(/"(?:[^"]|"")*"|,|\r?\n|[^",\r\n]+/g)) {
    if (part === ",") rows.at(-1).push("");
    else if (/^\r?\n$/.test(part)) rows.push([""]);
    else rows.at(-1)[rows.at(-1).length - 1] += part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part;
  }
  const [head, ...body] = rows.filter((row) => row.length > 1 || row[0] !== "");
  return (body ?? []).map((row) => Object.fromEntries(head.map((name, i) => [name, row[i] ?? ""])));
}
