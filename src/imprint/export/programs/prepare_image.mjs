/** Images as the graph takes them: resized exactly as imprint does, which uses Pillow.
 *
 * Pillow resamples with integer weights and rounds after each direction. This does the same;
 * the resizing of a canvas differs between browsers.
 */

const PRECISION = 22; // bits after the point of Pillow's weights
const SUPPORT = { box: 0.5, bilinear: 1, hamming: 1, bicubic: 2, lanczos: 3 };
const HAMMING = [Math.fround(0.54), Math.fround(0.46)]; // in single precision, as Pillow states them

/** A Blob, or the name of a file in Node, as {data, height, width, channels: 3}. */
export const read = (input) => (typeof input === "string" ? readFile(input) : readBlob(input));

/** Pixels of a Blob or a File in a browser: turned upright, on white if transparent. */
async function readBlob(blob) {
  const bitmap = await createImageBitmap(blob, { colorSpaceConversion: "none" });
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "white";
  context.fillRect(0, 0, bitmap.width, bitmap.height);
  context.drawImage(bitmap, 0, 0);
  return withoutOpacity(context.getImageData(0, 0, bitmap.width, bitmap.height));
}

/** Pixels of a file in Node; needs the package sharp. */
async function readFile(path) {
  const { default: sharp } = await import("sharp");
  const image = sharp(path, { ignoreIcc: true }).rotate().flatten({ background: "white" });
  const { data, info } = await image.toColourspace("srgb").raw().toBuffer({ resolveWithObject: true });
  if (info.channels === 3) return { data, height: info.height, width: info.width, channels: 3 };
  throw new Error(`${path}: expected 3 channels, not ${info.channels}`);
}

/** The pixels of a canvas, {data, height, width} with opacity, without it. */
export function withoutOpacity({ data, height, width }) {
  const pixels = new Uint8Array(3 * height * width);
  for (let i = 0, j = 0; i < data.length; i += 4) {
    pixels[j++] = data[i];
    pixels[j++] = data[i + 1];
    pixels[j++] = data[i + 2];
  }
  return { data: pixels, height, width, channels: 3 };
}

/** The function from pixels to the input of the graph. */
export function preparation({ preprocess }) {
  return (image) => {
    const { data, height, width, channels } = prepared(image, preprocess);
    return { type: "uint8", data, shape: [height, width, channels] };
  };
}

/** An image of the size that the rule states. */
export function prepared(image, rule) {
  const pixels = rule.colour === "grey" ? grey(image) : image;
  const [rows, columns] = windows(pixels.height, pixels.width, rule);
  // the order matters, because the values between the two are rounded
  const fewerRows = pixels.height - rows.total;
  const rowsFirst = rule.rows_first && fewerRows > Math.max(0, 2 * (pixels.width - columns.total));
  const resizeRows = (x) => resampledRows(x, rows, rule.filter);
  const resizeColumns = (x) => resampledColumns(x, columns, rule.filter);
  return rowsFirst ? resizeColumns(resizeRows(pixels)) : resizeRows(resizeColumns(pixels));
}

function grey({ data, height, width }) {
  const pixels = new Uint8Array(height * width);
  for (let i = 0; i < pixels.length; i++) {
    pixels[i] = (19595 * data[3 * i] + 38470 * data[3 * i + 1] + 7471 * data[3 * i + 2] + 0x8000) >> 16;
  }
  return { data: pixels, height, width, channels: 1 };
}

/** For rows and for columns: where the part of the image begins and ends, to how many values
 * it is resampled, and the first and number of those that are used.
 */
function windows(height, width, { size, crop, resize }) {
  const sides = [height, width];
  const shorter = Math.min(...sides);
  if (crop) {
    const length = Math.max(1, Math.trunc(crop * shorter));
    const starts = sides.map((side) => Math.floor((side - length + 1) / 2));
    return starts.map((begin, i) => ({ begin, end: begin + length, total: size[i], first: 0, count: size[i] }));
  }
  const totals = resize ? sides.map((side) => Math.trunc((resize * side) / shorter)) : size;
  return sides.map((side, i) => {
    const first = halfToEven((totals[i] - size[i]) / 2);
    return { begin: 0, end: side, total: totals[i], first, count: size[i] };
  });
}

/** A number rounded; one half goes to the even neighbour, as in Python. */
function halfToEven(x) {
  const low = Math.floor(x);
  return x - low === 0.5 ? low + (low % 2) : Math.round(x);
}

/** The rows of an image resampled. */
function resampledRows({ data, height, width, channels }, window, filter) {
  const stride = width * channels;
  const out = new Uint8Array(window.count * stride);
  weights(window, height, filter).forEach(({ start, integers }, i) => {
    for (let j = 0; j < stride; j++) {
      let sum = 0;
      for (let k = 0, at = start * stride + j; k < integers.length; k++, at += stride) sum += integers[k] * data[at];
      out[i * stride + j] = rounded(sum);
    }
  });
  return { data: out, height: window.count, width, channels };
}

/** The columns of an image resampled. */
function resampledColumns({ data, height, width, channels }, window, filter) {
  const out = new Uint8Array(height * window.count * channels);
  weights(window, width, filter).forEach(({ start, integers }, i) => {
    for (let row = 0; row < height; row++) {
      for (let c = 0; c < channels; c++) {
        let sum = 0;
        let at = (row * width + start) * channels + c;
        for (let k = 0; k < integers.length; k++, at += channels) sum += integers[k] * data[at];
        out[(row * window.count + i) * channels + c] = rounded(sum);
      }
    }
  });
  return { data: out, height, width: window.count, channels };
}

const rounded = (sum) => Math.min(255, Math.max(0, Math.floor((sum + 2 ** (PRECISION - 1)) / 2 ** PRECISION)));

/** For each value that is used: its first pixel, and the weights of it and the next ones,
 * times 2^22.
 */
function weights({ begin, end, total, first, count }, length, filter) {
  const scale = (end - begin) / total;
  const isCopy = begin === 0 && end === length && total === length;
  if (isCopy || filter === "nearest") {
    const positions = isCopy ? Array.from({ length }, (_, i) => i) : nearest(begin, scale, total);
    return positions.slice(first, first + count).map((start) => ({ start, integers: [2 ** PRECISION] }));
  }
  const stretch = Math.max(scale, 1); // the filter grows with the factor by which images shrink
  const support = SUPPORT[filter] * stretch;
  return Array.from({ length: count }, (_, i) => {
    const centre = begin + (first + i + 0.5) * scale;
    const start = Math.max(0, Math.trunc(centre - support + 0.5));
    const stop = Math.min(length, Math.trunc(centre + support + 0.5));
    const values = Array.from({ length: stop - start }, (_, k) => kernel(filter, (start + k - centre + 0.5) * (1 / stretch)));
    const whole = values.reduce((a, b) => a + b, 0);
    return { start, integers: values.map((value) => integer((value / whole) * 2 ** PRECISION)) };
  });
}

const integer = (value) => Math.trunc(value + (value < 0 ? -0.5 : 0.5));

/** The positions of the nearest pixels, added one by one with the rounding of Pillow. */
function nearest(begin, step, total) {
  let position = begin + 0.5 * step;
  return Array.from({ length: total }, () => {
    const at = Math.trunc(position);
    position += step;
    return at;
  });
}

/** Pillow's filters. */
function kernel(filter, x) {
  if (filter === "box") return x > -0.5 && x <= 0.5 ? 1 : 0;
  const a = Math.abs(x);
  if (a >= SUPPORT[filter]) return 0;
  if (filter === "bilinear") return 1 - a;
  if (filter === "hamming") return sinc(a) * (HAMMING[0] + HAMMING[1] * Math.cos(Math.PI * a));
  if (filter === "lanczos") return sinc(a) * sinc(a / 3);
  if (a < 1) return (1.5 * a - 2.5) * a * a + 1; // bicubic
  return (((a - 5) * a + 8) * a - 4) * -0.5;
}

const sinc = (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
