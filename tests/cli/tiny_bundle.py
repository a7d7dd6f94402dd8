"""An elastic model that was never trained, and images for it: small enough to be made by every test."""
import json
import struct

import cli

SIZE, CLASSES, IMAGES = 8, 3, 300


def npy(values, shape):
    """Numbers as the octets of a .npy file of float32."""
    header = str({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}f", *values)


def write_idx(folder):
    """A data set of small grey images in MNIST's files."""
    for part in ("train", "t10k"):
        pixels = bytes((7 * i) % 256 for i in range(IMAGES * SIZE * SIZE))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, IMAGES, SIZE, SIZE) + pixels)
        labels = bytes(i % CLASSES for i in range(IMAGES))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, IMAGES) + labels)


def make(folder):
    """Writes net.ffb and a data set into the folder; gives what `bundle show` says."""
    model, bundle = folder / "net.onnx", folder / "net.ffb"
    for command in (("model", "zoo", "resnet20", "--width", 0.5, "--image", SIZE, "--channels", 1, "--classes", CLASSES, "-o", model),
                    ("bundle", "draft", model, "-o", bundle, "--granularity", 0.5, "--merge", 0, "--shrink", 0.5)):
        outcome = cli.run(*command)
        assert outcome.status == 0, outcome
    write_idx(folder)
    return json.loads(cli.run("bundle", "show", bundle, "--json").stdout)
