"""examples/tensorflow/bert_squad: the network, its data and its score, in TensorFlow and in kilter."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import bert
import numpy as np
import pytest
import squad

import kilter
from conftest import assert_close, run_tensorflow, tf, write_graph

EXAMPLE = Path(bert.__file__).parent
DATA = Path(os.environ.get("KILTER_DATA", Path(__file__).parents[4] / "shared" / "data")) / "nlp"
WORDS = "the quick brown fox of paris was born in 1990 and ate 7 red apples near a river , they say .".split()
SIZE = bert.Size(layers=2, hidden=32, heads=2, length=64, vocabulary=len(WORDS) + 5, positions=64)


@pytest.fixture(scope="session")
def questions(tmp_path_factory):
    """A folder like that of prepare_dataset.sh: paragraphs and questions of a few words."""
    folder = tmp_path_factory.mktemp("squad")
    (folder / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]) + "\n"
    )
    rng = np.random.default_rng(3)
    paragraphs = []
    for number in range(12):
        words = rng.choice(WORDS, int(rng.integers(20, 90)))
        context = " ".join(words)
        qas = []
        for question in range(4):
            # Articles and punctuation alone would be no answer.
            first = int(rng.choice([i for i in range(len(words) - 4) if len(words[i]) > 3]))
            text = " ".join(words[first : first + int(rng.integers(1, 5))])
            start = len(" ".join(words[:first])) + (first > 0)
            asked = " ".join(rng.choice(WORDS, 6))
            answers = [{"text": text, "answer_start": start}]
            qas.append({"id": f"{number}-{question}", "question": asked, "answers": answers})
        paragraphs.append({"context": context, "qas": qas})
    content = {"version": "1.1", "data": [{"title": "words", "paragraphs": paragraphs}]}
    (folder / "dev-v1.1.json").write_text(json.dumps(content))
    return folder


def features_of(folder, length=SIZE.length):
    return squad.convert_examples_to_features(
        folder / "dev-v1.1.json",
        folder / "vocab.txt",
        max_seq_length=length,
        doc_stride=16,
        max_query_length=16,
    )


def pointing_at_answers(label_file, features):
    """Logits of a model that knows; and the questions whose answers no sequence of tokens is."""
    marked = {}
    for article in json.loads(Path(label_file).read_text())["data"]:
        for paragraph in article["paragraphs"]:
            for qa in paragraph["qas"]:
                answer = qa["answers"][0]
                begin = len(paragraph["context"][: answer["answer_start"]].encode())
                marked[str(qa["id"])] = (begin, begin + len(answer["text"].encode()))
    results, between = [], set()
    for feature in features:
        begin, end = marked[feature.question]
        inside = np.flatnonzero(
            (feature.token_start >= 0) & (feature.token_end > begin) & (feature.token_start < end)
        )
        logits = np.zeros((2, len(feature.input_ids)), np.float32)
        if len(inside) and feature.token_start[inside[0]] <= begin and feature.token_end[inside[-1]] >= end:
            logits[0, inside[0]] = logits[1, inside[-1]] = 9
            if feature.token_end[inside[-1]] != end or feature.token_start[inside[0]] != begin:
                between.add(feature.question)
        results.append(squad.RawResult(feature.unique_id, logits[0], logits[1]))
    return results, between


def f1_of(label_file, features, results, leave_out=()):
    examples, label = squad.read_squad_examples(label_file), squad.parse_label_file(label_file)
    preds, label = squad.SquadV1PostTransform(examples, features)((results, label))
    metric = squad.SquadF1()
    metric.update({question: text for question, text in preds.items() if question not in leave_out}, label)
    return metric.result()


def test_perfect_logits_score_100(questions):
    features = features_of(questions)
    assert len(features) > 48  # some paragraphs have several windows
    results, between = pointing_at_answers(questions / "dev-v1.1.json", features)
    assert not between
    assert f1_of(questions / "dev-v1.1.json", features, results) == pytest.approx(100)


def test_perfect_logits_score_100_on_real_questions():
    label_file = DATA / "xquad.en.json"
    if not label_file.exists():
        pytest.skip(f"no questions in {label_file}")
    features = squad.convert_examples_to_features(label_file, DATA / "bert-base-uncased-vocab.txt")
    assert len(features) == 1232 and features[0].unique_id == 1_000_000_000
    results, between = pointing_at_answers(label_file, features)
    assert between == {"5729e2316aef0514001550c5"}  # its answer ends within "2,700"
    assert f1_of(label_file, features, results, between) == pytest.approx(100)


def test_the_transform_agrees_with_the_native_metric(questions):
    features = features_of(questions)
    rng = np.random.default_rng(8)
    logits = rng.standard_normal((2, len(features), SIZE.length)).astype(np.float32)
    results = [squad.RawResult(f.unique_id, logits[0, i], logits[1, i]) for i, f in enumerate(features)]
    native = kilter.metrics.SquadF1()
    label = squad.parse_label_file(questions / "dev-v1.1.json")
    native.update(
        list(logits),
        [
            {
                "id": feature.question,
                "answers": label[feature.question],
                "context": feature.context.decode(),
                "token_start": feature.token_start,
                "token_end": feature.token_end,
                "max_context": feature.max_context,
            }
            for feature in features
        ],
    )
    found = f1_of(questions / "dev-v1.1.json", features, results)
    assert 0 < found < 100 and found == pytest.approx(native.result())


def test_kilter_computes_what_tensorflow_computes(questions, tmp_path):
    graph_def = bert.answers_to_questions(SIZE, bert.random_weights(2), records=False)
    features = features_of(questions)
    names = ("input_ids", "input_mask", "segment_ids")
    feeds = {name: np.stack([getattr(f, name) for f in features]).astype(np.int32) for name in names}
    outputs = ["unstack:0", "unstack:1"]
    expected = run_tensorflow(graph_def, {f"{name}:0": array for name, array in feeds.items()}, outputs)
    model = kilter.load(write_graph(graph_def, tmp_path / "bert.pb"), outputs=outputs)
    for found, one in zip(model.run(feeds).values(), expected, strict=True):
        assert_close(found, one)


def constants(graph_def):
    return {
        node.name: node.attr["value"].tensor.tensor_content for node in graph_def.node if node.op == "Const"
    }


def test_a_checkpoint_becomes_the_same_graph(tmp_path):
    """Names and shapes are those of Google's code: a checkpoint of such variables gives the network of these numbers."""
    wanted, made = {}, bert.random_weights(4)

    def recorded(name, shape):
        wanted[name] = made(name, shape)
        return wanted[name]

    expected = bert.answers_to_questions(SIZE, recorded)
    with tf.Graph().as_default():
        variables = [tf.compat.v1.get_variable(name, initializer=array) for name, array in wanted.items()]
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            prefix = tf.compat.v1.train.Saver(variables).save(session, str(tmp_path / "model.ckpt-7"))
    assert (
        "bert/encoder/layer_1/attention/self/query/kernel" in wanted and "cls/squad/output_weights" in wanted
    )
    found = bert.answers_to_questions(SIZE, bert.checkpoint_weights(prefix))
    assert constants(found) == constants(expected)


def run(script, *arguments, folder):
    """A script of the example."""
    environment = {**os.environ, "PYTHON": sys.executable, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        ["bash" if script.endswith(".sh") else sys.executable, EXAMPLE / script, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_scripts(questions, tmp_path):
    """Prepared, evaluated in TensorFlow and in kilter: the same score."""
    said = run("prepare_dataset.sh", "--output_dir=data", f"--source={questions}", folder=tmp_path)
    assert "prepared data" in said
    sizes = f"--layers 1 --hidden 32 --heads 2 --max_seq_length 64 --vocabulary {SIZE.vocabulary} --seed 6".split()
    run("build_model.py", "--output_model", "model/bert.pb", *sizes, folder=tmp_path)
    options = ("--input_model=model/bert.pb", "--max_seq_length=64", "--batch_size=4")
    lines = run("run_benchmark.sh", "--mode=accuracy", *options, folder=tmp_path).splitlines()
    assert lines[0] == "Batch size = 4"
    assert lines[1].startswith("Latency: ") and lines[1].endswith(" ms")
    assert lines[2].startswith("Throughput: ") and lines[2].endswith(" images/sec")
    size = dataclasses.replace(SIZE, layers=1, positions=512)
    write_graph(
        bert.answers_to_questions(size, bert.random_weights(6), records=False), tmp_path / "arrays.pb"
    )
    kilter_command = Path(sys.executable).with_name("kilter")
    native = subprocess.run(
        [kilter_command, "eval", "arrays.pb", "--config", EXAMPLE / "bert_native.yaml", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(native.stdout)["metrics"]["SquadF1"]
    assert lines[3] == f"Accuracy is {found:.3f}" and found > 0
    (tmp_path / "bert.yaml").write_text(
        (EXAMPLE / "bert.yaml").read_text().replace("relative:  0.01", "relative:  0.9")
    )
    said = run("run_tuning.sh", "--output_model=int8.pb", "--config=bert.yaml", *options, folder=tmp_path)
    assert "wrote int8.pb; the accuracy goal is met" in said
    assert "_QuantizedMatMul" in {
        node.op for node in kilter.tensorflow.make_graph(tmp_path / "int8.pb").as_graph_def().node
    }
