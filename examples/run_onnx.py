"""Classify images with an exported model: python run_onnx.py model.onnx a.png b.jpg"""

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
facts = session.get_modelmeta().custom_metadata_map
classes, rule = json.loads(facts["classes"]), json.loads(facts["preprocess"])
height, width = rule["size"]


def opened(path):
    """An image as imprint reads it: upright, in 8 bits, on white if transparent."""
    image = ImageOps.exif_transpose(Image.open(path))
    if image.mode.startswith("I"):  # 16 bits of grey; Pillow would clip them
        grey = (np.asarray(image).astype(np.int64) + 128) // 257
        image = Image.fromarray(grey.astype(np.uint8))
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        image = Image.new("RGB", colours.size, "white")
        image.paste(colours, mask=colours)
    return image.convert("RGB").convert("RGB" if rule["colour"] == "rgb" else "L")


for path in sys.argv[2:]:
    image = opened(path)
    side = int(rule.get("crop", 1) * min(image.size))  # with `crop`, a central square
    left, top = ((length - side + 1) // 2 for length in image.size)
    box = (left, top, left + side, top + side) if "crop" in rule else None
    small = image.resize((width, height), Image.Resampling[rule["filter"].upper()], box)
    pixels = np.asarray(small).reshape(1, height, width, -1)
    scores, probabilities = session.run(["scores", "probabilities"], {"images": pixels})
    best = scores[0].argmax()
    print(f"{path}\t{classes[best]}\t{probabilities[0, best]:.3f}")
