"""The pieces of examples/pytorch/blendcnn_mrpc, small: data, training, tuning, measuring, as its README runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "pytorch" / "blendcnn_mrpc"
DATA = Path(os.environ.get("KILTER_DATA") or ROOT.parent / "shared" / "data") / "nlp"

sys.path.insert(0, str(EXAMPLE))
import data  # noqa: E402
import metrics  # noqa: E402
import models  # noqa: E402
import training  # noqa: E402

WORDS = "the a cat dog sat ran slept on under mat tree house big small red old".split()


def run(*command, cwd):
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pairs(count, seed):
    """Lines of MRPC: paraphrases repeat the words, others have new ones."""
    generator = torch.Generator().manual_seed(seed)

    def sentence():
        return [WORDS[i] for i in torch.randint(0, len(WORDS), (7,), generator=generator)]

    lines = ["\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
    for number in range(count):
        first = sentence()
        same = number % 3 != 0
        second = first[::-1] if same else sentence()
        lines.append(f"{int(same)}\t{number}\t{number}\t{' '.join(first)}\t{' '.join(second)}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder as the README makes it, with a small network and made-up sentences."""
    folder = tmp_path_factory.mktemp("blendcnn")
    source = folder / "source"
    source.mkdir()
    (source / "msr_paraphrase_train.txt").write_text(pairs(200, 1), encoding="utf-8")
    (source / "msr_paraphrase_test.txt").write_text(pairs(60, 2), encoding="utf-8")
    vocabulary = (
        ["[PAD]"] + [f"[unused{i}]" for i in range(99)] + ["[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    )
    (folder / "models").mkdir()
    (folder / "models" / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    config = json.loads((EXAMPLE / "config/blendcnn/mrpc/train.json").read_text())
    config["length"] = 24
    config["model"] |= {"vocabulary": len(vocabulary), "width": 32, "channels": 20, "layers": 3}
    config["training"] |= {"epochs": 6, "made_up_epochs": 1, "averaged_epochs": 2, "batch_size": 20}
    (folder / "train.json").write_text(json.dumps(config))
    assert "train.tsv: 180 pairs" in run(
        sys.executable, EXAMPLE / "prepare_data.py", "--source", source, cwd=folder
    )
    said = run(sys.executable, EXAMPLE / "classify.py", "--model_config", "train.json", cwd=folder)
    assert "epoch 6: loss" in said
    return folder


def test_dev_is_held_out(work):
    lines = {name: (work / "MRPC" / f"{name}.tsv").read_text().splitlines()[1:] for name in ("train", "dev")}
    assert len(lines["train"]) == 180 and len(lines["dev"]) == 20
    assert not set(lines["train"]) & set(lines["dev"])


def test_tuning_and_both_measurements(work):
    said = run(EXAMPLE / "run_tuning.sh", "--input_model=models", "--dataset_location=MRPC", cwd=work)
    assert "promise kept: True" in said
    sizes = [
        (work / path).stat().st_size for path in ("models/model_final.pt", "saved_results/model_int8.onnx")
    ]
    assert sizes[1] < sizes[0]
    for options in (["--int8=true"], ["--int8=False", "--input_model=models"]):
        said = run(EXAMPLE / "run_benchmark.sh", *options, "--mode=benchmark", "--samples=64", cwd=work)
        assert "Latency: " in said and " ms\n" in said and " images/sec" in said
        said = run(EXAMPLE / "run_benchmark.sh", *options, "--mode=accuracy", cwd=work)
        assert "samples/sec" in said and "Accuracy: 0." in said and "F1: 0." in said


def test_unknown_options_are_refused(work):
    for script in ("run_tuning.sh", "run_benchmark.sh"):
        done = subprocess.run(
            [EXAMPLE / script, "--batchsize=3"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and "unknown option --batchsize=3" in done.stderr


def test_folding_the_normalization_keeps_the_function():
    torch.manual_seed(0)
    layer = training.Normalized(torch.nn.Linear(6, 4))
    for _ in range(5):
        layer(torch.randn(16, 6) * 3 + 1)
    layer.norm.weight.data.uniform_(0.5, 2)
    layer.norm.bias.data.normal_()
    x = torch.randn(3, 6)
    assert torch.allclose(layer.eval()(x), layer.folded()(x), atol=1e-5)


def test_a_convolution_is_a_product():
    torch.manual_seed(0)
    convolution = torch.nn.Conv1d(6, 4, kernel_size=5, padding=2)
    x = torch.randn(3, 6, 9)
    assert torch.allclose(training.AsProduct(convolution)(x), convolution(x), atol=1e-5)


def test_always_saying_yes_is_no_success():
    labels = torch.tensor([1, 1, 1, 0])
    dataset = torch.utils.data.TensorDataset(torch.zeros(4, 3), torch.zeros(4, 3), labels)

    class Yes(torch.nn.Module):
        def forward(self, tokens, segments):
            return torch.tensor([[0.0, 1.0]]).expand(len(tokens), 2)

    figures = metrics.evaluate(Yes(), dataset)
    assert figures.accuracy == 0.75 and figures.balanced == 0.5


def test_pairs_are_taken_apart_and_joined(work):
    for tokens, segments, _ in data.read(work / "MRPC" / "dev.tsv", work / "models" / "vocab.txt", 24):
        again = data.join(*data.halves(tokens, segments), 24)
        assert torch.equal(again[0], tokens) and torch.equal(again[1], segments)


def test_embeddings_of_a_bert_are_used(tmp_path):
    model = models.BlendCNN(vocabulary=50, length=16, width=8, channels=4, layers=2)
    state = {
        "bert.embeddings.word_embeddings.weight": torch.randn(50, 8),
        "bert.embeddings.position_embeddings.weight": torch.randn(16, 8),
        "bert.embeddings.token_type_embeddings.weight": torch.randn(2, 8),
        "bert.embeddings.LayerNorm.weight": torch.randn(8),
        "bert.embeddings.LayerNorm.bias": torch.randn(8),
    }
    torch.save(state, tmp_path / "pytorch_model.bin")
    training.load_embeddings(model, tmp_path / "pytorch_model.bin")
    assert torch.equal(model.embeddings.token.weight, state["bert.embeddings.word_embeddings.weight"])
    with pytest.raises(SystemExit, match="the configuration has"):
        training.load_embeddings(
            models.BlendCNN(vocabulary=51, length=16, width=8), tmp_path / "pytorch_model.bin"
        )


@pytest.mark.skipif(not (DATA / "msr_paraphrase_train.txt").exists(), reason="KILTER_DATA has no MRPC")
def test_the_real_files_are_read(tmp_path):
    run(sys.executable, EXAMPLE / "prepare_data.py", "--source", DATA, "--output", tmp_path, cwd=tmp_path)
    test = data.read(tmp_path / "test.tsv", DATA / "bert-base-uncased-vocab.txt", 128)
    assert len(test) == 1725 and int(test.tensors[2].sum()) == 1147
    assert all(int(row[0]) == data.CLS for row in test.tensors[0])


TRAINED = os.environ.get("KILTER_BLENDCNN")


@pytest.mark.skipif(
    not TRAINED, reason="KILTER_BLENDCNN names no folder with models and MRPC, as the README makes them"
)
def test_the_trained_model_keeps_the_promise_on_the_test_set(tmp_path):
    folder = Path(TRAINED)
    where = [f"--dataset_location={folder / 'MRPC'}", f"--vocab={folder / 'models' / 'vocab.txt'}"]
    run(
        EXAMPLE / "run_tuning.sh",
        f"--input_model={folder / 'models'}",
        f"--output_model={tmp_path}",
        *where,
        cwd=tmp_path,
    )
    figures = []
    for model in (
        ["--int8=false", f"--input_model={folder / 'models'}"],
        ["--int8=true", f"--input_model={tmp_path}"],
    ):
        said = run(EXAMPLE / "run_benchmark.sh", "--mode=accuracy", *model, *where, cwd=tmp_path)
        figures.append([float(line.split()[1]) for line in said.splitlines() if line[:2] in ("Ac", "F1")])
    (accuracy, f1), (accuracy8, f18) = figures
    assert accuracy > 0.665  # the share of the larger class
    assert accuracy8 >= 0.99 * accuracy and f18 >= 0.99 * f1
    whole, small = (folder / "models" / "model_final.pt").stat(), (tmp_path / "model_int8.onnx").stat()
    assert small.st_size < 0.27 * whole.st_size
