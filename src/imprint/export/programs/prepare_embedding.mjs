/** Embeddings as the graph takes them. */

/** A list of numbers, or its JSON. */
export const read = (input) => (typeof input === "string" ? JSON.parse(input) : input);

/** The function from a list of numbers to the input of the graph. */
export function preparation({ dtype }) {
  const List = dtype === "float64" ? Float64Array : Float32Array;
  return (row) => ({ type: dtype, data: List.from(row), shape: [row.length] });
}
