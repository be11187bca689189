/** Code that runs as it is shown, for the classes of this project. */

const quoted = (text) => JSON.stringify(text);

/** A list of {title, file, code}; `file` says what must lie next to the code. */
export function snippets({ typed, suffixes, input, classes, token_file: token, noun, evaluation }, origin) {
  const name = typed ? "" : suffixes.includes(".wav") ? "new.wav" : suffixes.includes(".jpg") ? "new.jpg" : `new${suffixes[0] ?? ""}`;
  const asked = typed ? "where is my parcel" : name;
  const next = typed ? "" : ` and ${name}`;
  const list = [
    { title: "Python", file: `Next to model.imprint${next}; needs pip install weight-imprinting.`, code: python(asked, evaluation?.calibrated) },
    { title: "curl", file: `Asks this server, on this machine${typed ? "" : `, about ${name}`}.`, code: curl(asked, typed, token, origin) },
  ];
  if (input) list.splice(1, 0, { title: "JavaScript with onnxruntime-web", file: `Next to model.onnx; needs npm install onnxruntime-web. Browsers resize ${noun}s a little differently than Python does.`, code: javascript(fitted(classes), input) });
  return list;
}

/** The classes of the model, in its order. */
const fitted = (classes) => classes.filter((one) => one.opened || one.items.some((item) => !item.heldOut)).map((one) => one.label).sort();

const python = (asked, calibrated) => `from imprint import Imprinter

model = Imprinter.load("model.imprint")
inputs = [${quoted(asked)}]
print(model.predict(inputs), model.predict_proba(inputs).max(axis=1)${calibrated ? ", model.known(inputs)" : ""})
`;

const curl = (asked, typed, token, origin) => `curl -H "Authorization: Bearer $(cat '${token}')" \\
  ${typed ? `-H "Content-Type: application/json" -d '{"text": ${quoted(asked)}}'` : `--data-binary @${asked}`} "${origin}/api/predict${typed ? "" : `?name=${asked}`}"
`;

const javascript = (labels, { size: [height, width], crop, colour }) => `import * as ort from "onnxruntime-web";

const classes = ${JSON.stringify(labels)};
const session = await ort.InferenceSession.create("model.onnx");

/** Classify an <img>, a <canvas> or an ImageBitmap. */
export async function classify(image) {
  const canvas = new OffscreenCanvas(${width}, ${height});
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  const [w, h] = [image.naturalWidth ?? image.width, image.naturalHeight ?? image.height];
${crop ? `  const side = Math.floor(${crop} * Math.min(w, h)); // a square in the middle
  context.drawImage(image, (w - side) / 2, (h - side) / 2, side, side, 0, 0, ${width}, ${height});` : `  context.drawImage(image, 0, 0, w, h, 0, 0, ${width}, ${height});`}
  const { data } = context.getImageData(0, 0, ${width}, ${height});
${colour === "rgb" ? `  const pixels = data.filter((_, i) => i % 4 < 3); // without opacity
  const input = new ort.Tensor("uint8", new Uint8Array(pixels), [1, ${height}, ${width}, 3]);` : `  const pixels = Uint8Array.from({ length: data.length / 4 }, (_, i) => 0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]);
  const input = new ort.Tensor("uint8", pixels, [1, ${height}, ${width}, 1]);`}
  const { probabilities, known } = await session.run({ images: input });
  const best = probabilities.data.indexOf(Math.max(...probabilities.data));
  const familiar = !known || known.data[0] >= 0.05; // the p-value of a calibrated model
  return { label: familiar ? classes[best] : null, probability: probabilities.data[best] };
}
`;
