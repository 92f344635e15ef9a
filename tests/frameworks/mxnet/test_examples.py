"""The scripts of examples/mxnet, to their ends, on real networks and images."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest

import kilter

EXAMPLES = Path(__file__).parents[3] / "examples" / "mxnet"
SMALL = ["--resize", "32", "--crop", "32", "--mean", ".4914,.4822,.4465", "--std", ".2023,.1994,.2010"]


@pytest.fixture(scope="module")
def records(request, tmp_path_factory):
    """200 images of CIFAR-10 as a RecordIO file, and the folder of networks."""
    from PIL import Image

    data = request.getfixturevalue("shared_data")
    folder = tmp_path_factory.mktemp("records")
    rows = np.asarray(Image.open(data / "cifar10" / "test1000.png").convert("RGB")).reshape(-1, 32, 32, 3)
    labels = np.loadtxt(data / "cifar10" / "test1000_labels.txt", dtype=int)
    record = mx.recordio.MXIndexedRecordIO(str(folder / "val.idx"), str(folder / "val.rec"), "w")
    for i in range(200):
        header = mx.recordio.IRHeader(0, float(labels[i]), i, 0)
        # Channels are turned round once more there.
        record.write_idx(i, mx.recordio.pack_img(header, rows[i][..., ::-1], quality=9, img_fmt=".png"))
    record.close()
    return folder / "val.rec", data / "mxnet_cifar10"


def run(script, folder, *arguments):
    environment = os.environ | {"MXNET_SUBGRAPH_BACKEND": "NONE"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def images(records, network):
    path, networks = records
    return ["--rec", path, "--network", networks / network, "--batch-size", 50, "--batches", 3, *SMALL]


def test_resnet18(records, tmp_path):
    printed = run("resnet18.py", tmp_path, *images(records, "cifar_resnet20_v1"))
    assert "Tune Result Statistics" in printed
    assert (tmp_path / "resnet18_int8-symbol.json").exists()


def test_resnet_mse(records, tmp_path):
    printed = run("resnet_mse.py", tmp_path, *images(records, "cifar_resnet20_v2"))
    last = printed.strip().splitlines()[-1]
    assert re.match(
        r"\{'excluded_symbols': \[.*\], 'quantized_dtype': 'auto', 'quantize_mode': 'smart'", last
    )
    exported = mx.gluon.SymbolBlock.imports(
        str(tmp_path / "resnet50_v2_mse-symbol.json"), ["data"], str(tmp_path / "resnet50_v2_mse-0000.params")
    )
    assert exported(mx.nd.zeros((1, 3, 32, 32))).shape == (1, 10)


def test_resnet_tuning_and_measurement(records, tmp_path):
    given = images(records, "cifar_resnet20_v2")
    printed = run("resnet_tuning.py", tmp_path, *given, "--max-trials", 8)
    names = re.findall(r"^(\w+) made in [\d.]+ s$", printed, re.MULTILINE)
    assert names[:2] == ["fp32", "fp32_fused"] and len(names) == 11
    measured = run("resnet_measurement.py", tmp_path, *given)
    accuracy = {
        name: float(value)
        for name, value in re.findall(r"^(\S+(?: in kilter)?) Top1 Accuracy: ([\d.]+)", measured, re.M)
    }
    assert len(accuracy) == 11 + 5
    fp32 = accuracy["resnet50_v2_01_fp32"]
    for name, value in accuracy.items():
        if "in kilter" in name:
            assert value >= 0.985 * fp32, name
    # Each strategy has its own history, and any trial can be built again.
    studies = sorted((tmp_path / "models").glob("*_study"))
    assert len(studies) == 5
    for study in studies:
        assert (study / "study.journal").exists()
        assert isinstance(kilter.recover(study, 1), kilter.QuantizedModel)


def test_the_duel_writes_tables_and_a_plot(shared_data, tmp_path):
    script = EXAMPLES.parents[1] / "bench" / "mxnet_duel.py"
    words = "--images 32 --calibration 32 --batch 16 --rounds 1 --max-trials 2 --max-loss 0.5 --output duel".split()
    environment = os.environ | {"KILTER_DATA": str(shared_data)}
    done = subprocess.run(
        [
            sys.executable,
            str(script),
            "cifar_resnet20_v1",
            *words,
            "--rows",
            "inc basic,kilter int8,kilter auto",
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads((tmp_path / "duel.json").read_text())
    names = [row["name"] for row in report["rows"]]
    assert names == [
        "mxnet fp32",
        "mxnet fp32 fused",
        "inc basic",
        "kilter int8 naive",
        "kilter int8 entropy",
        "kilter auto",
    ]
    for row in report["rows"]:
        assert row["validation"] > 0 and row["speedup"] > 0 and row["loss1"] < 50
    text = (tmp_path / "duel.md").read_text()
    assert all(f"| {name} |" in text for name in names)
    assert (tmp_path / "duel.svg").read_text().count("<circle") == len(names)
