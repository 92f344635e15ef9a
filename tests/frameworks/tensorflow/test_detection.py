"""A real detector: SSDLite-MobileNetV2 on COCO images keeps its accuracy on integers, in kilter and in stock TensorFlow."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kilter
from conftest import tf

BOXES, SCORES = "Postprocessor/ExpandDims_1", "Postprocessor/Slice"
METRIC = {"nms": {"iou": 0.6, "score": 0.05}}
# COCO numbers its 80 classes from 1 to 90, with gaps.
CLASSES = [number for number in range(1, 91) if number not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]


@pytest.fixture(scope="module")
def coco(tmp_path_factory, images=128):
    """The images with their boxes as COCO writes them."""
    root = Path(os.environ.get("KILTER_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not (root / "coco_val128").is_dir():
        pytest.skip(f"there are no COCO images in {root}")
    folder = tmp_path_factory.mktemp("coco")
    (folder / "val2017").symlink_to(root / "coco_val128")
    sizes, boxes = {}, []
    with open(root / "coco_val128" / "labels_yolo.csv") as file:
        for row in csv.DictReader(file):
            name = row["file"]
            if name not in sizes:
                image = tf.io.decode_jpeg((folder / "val2017" / name).read_bytes())
                sizes[name] = image.shape[:2]
            height, width = sizes[name]
            x, y, w, h = (float(row[key]) for key in ("cx", "cy", "w", "h"))
            box = [(x - w / 2) * width, (y - h / 2) * height, w * width, h * height]
            number = int(Path(name).stem)
            boxes.append({"image_id": number, "category_id": CLASSES[int(row["class80"])], "bbox": box})
    entries = [{"id": int(Path(name).stem), "file_name": name} for name in sizes]
    assert len(entries) == images
    (folder / "annotations").mkdir()
    content = json.dumps({"images": entries, "annotations": boxes})
    (folder / "annotations" / "instances_val2017.json").write_text(content)
    return root, folder


def accuracy_in_tensorflow(path, folder):
    graph_def = tf.compat.v1.GraphDef.FromString(Path(path).read_bytes())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    metric = kilter.metrics.COCOmAP(**METRIC)
    with tf.compat.v1.Session(graph=graph) as session:
        for inputs, labels in kilter.data.Loader({"COCORaw": {"root": str(folder)}}, batch_size=1):
            outputs = session.run([f"{BOXES}:0", f"{SCORES}:0"], {"image_tensor:0": inputs[0]})
            metric.update(outputs, labels)
    return metric.result()


def test_detector_keeps_its_accuracy(coco, tmp_path):
    root, folder = coco
    source = root / "tensorflow" / "ssdlite_mobilenet_v2_coco.pb"
    loader = {"batch_size": 1, "dataset": {"COCORaw": {"root": str(folder)}}}
    others = {"batch_size": 1, "dataset": {"ImageFolder": {"root": str(root / "imagenet_calib100")}}}
    config = {
        "version": 1.0,
        "model": {"name": "ssdlite", "framework": "tensorflow", "outputs": f"{BOXES}, {SCORES}"},
        "quantization": {"calibration": {"sampling_size": 100, "dataloader": others}},
        "evaluation": {"accuracy": {"metric": {"COCOmAP": METRIC}, "dataloader": loader}},
        "tuning": {"accuracy_criterion": {"relative": 0.02}, "exit_policy": {"timeout": 0}},
    }
    (tmp_path / "ssd.yaml").write_text(json.dumps(config))
    int8 = tmp_path / "int8.pb"
    process = subprocess.run(
        [
            Path(sys.executable).with_name("kilter"),
            "tune",
            "ssd.yaml",
            "--model",
            source,
            "-o",
            int8,
            "--json",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    tuned = json.loads(process.stdout)
    fp32 = accuracy_in_tensorflow(source, folder)
    assert fp32 == pytest.approx(0.348, abs=0.002)
    assert tuned["baseline"]["accuracy"][0] == pytest.approx(fp32, abs=1e-3)
    assert tuned["best"]["outcome"]["accuracy"][0] >= 0.98 * fp32
    assert accuracy_in_tensorflow(int8, folder) >= 0.98 * fp32
