"""Writes the seed corpus of the fuzzer of data files: python make_data_corpus.py DIRECTORY.

The first byte of a seed says which kind of file follows: i(mage), t(frecord), e(xample), r(ecordio), (id)x, g(zip).
"""

import gzip
import io
import struct
import sys
from pathlib import Path

import numpy as np
from PIL import Image

MAGIC = struct.pack("<I", 0xCED7230A)


def encoded(kind: str, mode: str, **options) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 11, 4), np.uint8)
    stream = io.BytesIO()
    image = Image.fromarray(pixels[:, :, :3])
    if mode == "RGBA":
        image = Image.fromarray(pixels)
    image.convert(mode).save(stream, kind, **options)
    return stream.getvalue()


def masked(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def field(number: int, content: bytes) -> bytes:
    size, prefix = len(content), b""
    while size >= 128:
        prefix += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + prefix + bytes([size]) + content


def feature(name: str, content: bytes) -> bytes:
    return field(1, field(1, name.encode()) + field(2, content))


def example(image: bytes) -> bytes:
    entries = feature("image/encoded", field(1, field(1, image)))
    entries += feature("image/class/label", field(3, field(1, b"\x07")))
    entries += feature("image/source_id", field(1, field(1, b"42")))
    entries += feature("image/object/class/label", field(3, b"\x08\x03"))
    entries += feature("image/object/class/text", field(1, field(1, b"cat")))
    for side in ("ymin", "xmin", "ymax", "xmax"):
        entries += feature(f"image/object/bbox/{side}", field(2, field(1, struct.pack("<f", 0.5))))
    return field(1, entries)


def part(flag: int, content: bytes) -> bytes:
    return MAGIC + struct.pack("<I", flag << 29 | len(content)) + content + b"\0" * (-len(content) % 4)


def seeds() -> list[bytes]:
    images = [encoded("png", mode) for mode in ("RGB", "RGBA", "L", "P", "1")]
    images += [encoded("jpeg", mode) for mode in ("RGB", "L", "CMYK")]
    images += [encoded("jpeg", "RGB", progressive=True), encoded("jpeg", "RGB", subsampling=0)]
    files = [b"i" + image for image in images]
    for image in (images[0], images[5]):
        files.append(b"e" + example(image))
        one = struct.pack("<IfQQ", 0, 5, 0, 0) + image
        two = struct.pack("<IfQQ", 2, 0, 1, 0) + struct.pack("<ff", 1, 2) + image
        files.append(b"r" + part(0, one) + part(0, two))
        files.append(b"r" + part(1, one[:40]) + part(2, b"abc") + part(3, one[40:]))
    files.append(b"t" + tfrecord(b"first") + tfrecord(b"") + tfrecord(b"third"))
    files.append(b"x" + bytes([0, 0, 8, 3]) + struct.pack(">III", 2, 3, 4) + bytes(24))
    files.append(b"g" + gzip.compress(bytes(1000) + b"text", mtime=0))
    files.append(b"x" + bytes([0, 0, 8, 1]) + struct.pack(">I", 5) + bytes(5))
    return files


def main() -> None:
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    files = seeds()
    for index, content in enumerate(files):
        (directory / f"{index:02}").write_bytes(content)
    print(f"{len(files)} seeds in {directory}")


if __name__ == "__main__":
    main()
