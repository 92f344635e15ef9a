"""Graphs that TensorFlow runs: observed in sessions, handed to the user's function as real graphs, tuned all the same."""

import logging
from types import SimpleNamespace

import bert
import keras
import numpy as np
import pytest
import squad
from test_bert_squad import SIZE, features_of, questions  # noqa: F401

import kilter
from conftest import tf, write_graph
from kilter import experimental
from kilter.quantization import Quantization

tf1 = tf.compat.v1
RNG = np.random.default_rng(21)
ROWS = RNG.standard_normal((64, 12)).astype(np.float32)


def network(opaque=False, seed=3):
    """Two products. With `opaque` the rows come as bytes, which kilter cannot decode."""
    rng = np.random.default_rng(seed)
    graph = tf.Graph()
    with graph.as_default():
        if opaque:
            x = tf.reshape(
                tf.io.decode_raw(tf1.placeholder(tf.string, [None], "bytes"), tf.float32), [-1, 12]
            )
        else:
            x = tf1.placeholder(tf.float32, [None, 12], "rows")
        for index, (inputs, units) in enumerate(((12, 24), (24, 5))):
            x = tf.matmul(
                x,
                tf.constant(rng.standard_normal((inputs, units)).astype(np.float32)),
                name=f"product{index}",
            )
            x = tf.nn.bias_add(x, tf.constant(rng.standard_normal(units).astype(np.float32)))
            x = tf.nn.relu(x) if index == 0 else tf.identity(x, "scores")
    return graph


def truth(graph, name, values):
    with tf1.Session(graph=graph) as session:
        return session.run("scores:0", {name: values}).argmax(1)


LABELS = truth(network(), "rows:0", ROWS)
BYTES = np.array([row.tobytes() for row in ROWS], object)


class Judge:
    """How often a graph says what FP32 says; and what it was given."""

    def __init__(self, name="rows:0", values=ROWS):
        self.graphs, self.name, self.values = [], name, values

    def __call__(self, graph):
        self.graphs.append(graph)
        with tf1.Session(graph=graph) as session:
            return np.mean(session.run("scores:0", {self.name: self.values}).argmax(1) == LABELS)


def ops(graph):
    return {operation.type for operation in graph.get_operations()}


def test_a_function_gets_real_graphs(tmp_path):
    judge = Judge()
    result = kilter.tune(
        network(), iter([ROWS[:32], ROWS[32:]]), evaluate=judge, max_loss="10%", progress=False
    )
    assert result.met and result.baseline.accuracy == (1.0,)
    assert all(isinstance(graph, tf.Graph) for graph in judge.graphs)
    assert "QuantizeV2" not in ops(judge.graphs[0]) and "QuantizeV2" in ops(judge.graphs[1])
    assert result.baseline.milliseconds > 0 and result.best.milliseconds > 0
    assert result.best.bytes < 0.5 * result.baseline.bytes
    assert isinstance(result.model, tf.Graph) and judge(result.model) == result.best.accuracy[0]
    assert {entry["name"] for entry in result.plan["operators"]} == {"product0", "product1"}
    result.save(tmp_path / "int8.pb")
    assert judge(kilter.tensorflow.make_graph(tmp_path / "int8.pb")) == result.best.accuracy[0]
    with pytest.raises(kilter.InputValueError, match="no ONNX"):
        result.save(tmp_path / "int8.onnx")


def test_exclusions_and_fallback():
    spared = kilter.tune(
        network(), [ROWS], evaluate=Judge(), max_loss="10%", exclude="product0", max_trials=1, progress=False
    )
    assert [entry["precision"] for entry in spared.plan["operators"]] == ["f32", "int8"]

    def hard(graph):
        """Integers are never good enough."""
        return 0.0 if "QuantizeV2" in ops(graph) else 1.0

    result = kilter.tune(network(), [ROWS], evaluate=hard, progress=False)
    assert {entry.name for entry in result.spared} == {"product0", "product1"} and result.met
    assert "QuantizeV2" not in ops(result.model)


@pytest.mark.parametrize("form", ["graph", "path"])
def test_what_kilter_cannot_run(form, tmp_path):
    graph = network(opaque=True)
    model = graph if form == "graph" else write_graph(graph.as_graph_def(), tmp_path / "graph.pb")
    data = [(BYTES[i : i + 16], LABELS[i : i + 16]) for i in range(0, 64, 16)]
    result = kilter.tune(model, metric="topk", data=data, max_loss="10%", progress=False)
    assert result.met and result.baseline.accuracy == (1.0,)
    assert Judge("bytes:0", BYTES)(result.model) == result.best.accuracy[0]
    small = kilter.quantize(model, [BYTES])
    assert "QuantizeV2" in ops(small)
    assert Judge("bytes:0", BYTES)(small) > 0.9


def test_a_study_is_resumed(tmp_path):
    judge = Judge()
    first = kilter.tune(network(), [ROWS], evaluate=judge, max_loss="10%", workspace=tmp_path, progress=False)
    assert (tmp_path / "study.journal").exists() and (tmp_path / "best.pb").exists()
    judge.graphs.clear()
    again = kilter.tune(
        network(), [ROWS], evaluate=judge, max_loss="10%", workspace=tmp_path, resume=True, progress=False
    )
    assert not judge.graphs
    assert [trial.candidate for trial in again.trials] == [trial.candidate for trial in first.trials]
    with pytest.raises(kilter.Error, match="the model changed"):
        kilter.tune(
            network(seed=9),
            [ROWS],
            evaluate=judge,
            max_loss="10%",
            workspace=tmp_path,
            resume=True,
            progress=False,
        )
    with pytest.raises(kilter.Error, match=r"best\.pb"):
        kilter.recover(tmp_path)


def test_errors_of_the_function_pass():
    def broken(graph):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        kilter.tune(network(), [ROWS], evaluate=broken, progress=False)
    with pytest.raises(kilter.InputTypeError, match="no samples"):
        kilter.tune(network(), iter([]), evaluate=Judge(), progress=False)


def test_the_older_interface_with_a_path(tmp_path):
    """A function written for TensorFlow gets a graph, also where the model was given as a file."""
    path = write_graph(network().as_graph_def(), tmp_path / "graph.pb")
    config = {
        "model": {"name": "m", "framework": "tensorflow", "inputs": "rows", "outputs": "scores"},
        "tuning": {"accuracy_criterion": {"relative": 0.1}, "workspace": {"path": str(tmp_path / "study")}},
    }
    judge = Judge()
    quantizer = Quantization(config)
    best = quantizer(path, q_dataloader=[(ROWS, LABELS)], eval_func=judge)
    assert quantizer.met and isinstance(best, tf.Graph)
    assert all(isinstance(graph, tf.Graph) for graph in judge.graphs)


class Same:
    """A metric of one's own: how often the class is the true one."""

    def reset(self):
        self.hits, self.count = 0, 0

    def update(self, preds, labels):
        self.hits += np.sum(preds.argmax(1) == labels)
        self.count += len(labels)

    def result(self):
        return self.hits / self.count


def test_the_older_interface_with_a_metric_of_ones_own(tmp_path):
    quantizer = experimental.Quantization({"tuning": {"workspace": {"path": str(tmp_path)}}})
    quantizer.model = network()
    quantizer.calib_dataloader = quantizer.eval_dataloader = [
        (ROWS[:32], LABELS[:32]),
        (ROWS[32:], LABELS[32:]),
    ]
    quantizer.metric = experimental.common.Metric(Same)
    best = quantizer.fit()
    assert quantizer.result.baseline.accuracy == (1.0,)
    assert best.q_config["plan"]["operators"]
    best.save(tmp_path / "out")
    assert (tmp_path / "out" / "best_model.pb").exists()


def test_nothing_to_judge_with(tmp_path):
    """The first model, as the old tools return it."""
    quantizer = Quantization({"tuning": {"workspace": {"path": str(tmp_path)}}})
    best = quantizer(network(opaque=True), q_dataloader=[(BYTES, LABELS)])
    assert quantizer.met is None and "QuantizeV2" in ops(best)


def test_a_keras_model_that_kilter_cannot_run(tmp_path):
    def decode(texts):
        return tf.reshape(tf.io.decode_raw(texts, tf.float32), [-1, 12])

    texts = keras.Input((), dtype="string", name="texts")
    hidden = keras.layers.Dense(24, activation="relu")(keras.layers.Lambda(decode, output_shape=(12,))(texts))
    model = keras.Model(texts, keras.layers.Dense(5)(hidden))
    expected = np.asarray(model(tf.constant(BYTES))).argmax(1)

    def accuracy(candidate):
        return np.mean(np.asarray(candidate(tf.constant(BYTES))).argmax(1) == expected)

    result = kilter.tune(model, [BYTES], evaluate=accuracy, max_loss="10%", progress=False)
    assert result.met and isinstance(result.model, kilter.tensorflow.Model)
    assert accuracy(result.model) == result.best.accuracy[0]
    result.save(tmp_path / "int8.pb")
    assert "QuantizeV2" in ops(kilter.tensorflow.make_graph(tmp_path / "int8.pb"))


# What follows, down to the test, is the code of document 000, with other imports; `six.iteritems` became `.items()`, and the session has
# as many threads as this machine.


class Dataset:
    def __init__(self, file_name, batch_size):
        self.file_name, self.batch_size = file_name, batch_size

    def __getitem__(self, idx):
        return (self.file_name, self.batch_size), 0

    def __len__(self):
        return 1


def collate_fn(batch):
    """Puts each data field into a pd frame with outer dimension batch size"""
    elem = batch[0]
    return elem


def document_code(graph, eval_writer, eval_examples, eval_features, FLAGS):
    RawResult, SquadF1, SquadV1PostTransform = squad.RawResult, squad.SquadF1, squad.SquadV1PostTransform
    parse_label_file = squad.parse_label_file

    def eval_func(graph, iteration=-1):
        print("gonna eval the model....")
        from kilter.frameworks.tensorflow import iterator_sess_run  # noqa: F401

        iter_op = graph.get_operation_by_name("MakeIterator")
        feed_dict = {"input_file:0": eval_writer.filename, "batch_size:0": FLAGS.predict_batch_size}

        all_results = []
        output_tensor = {
            "unique_ids": graph.get_tensor_by_name("IteratorGetNext:3"),
            "start_logits": graph.get_tensor_by_name("unstack:0"),
            "end_logits": graph.get_tensor_by_name("unstack:1"),
        }
        config = tf.compat.v1.ConfigProto()
        config.use_per_session_threads = 1
        config.inter_op_parallelism_threads = 1
        sess = tf.compat.v1.Session(graph=graph, config=config)
        sess.run(iter_op, feed_dict)

        def result_producer(results):
            num_examples = results["unique_ids"].shape[0]
            for i in range(num_examples):
                yield {key: value[i] for key, value in results.items()}

        import time

        time_list = []
        idx = 0
        while idx < iteration or iteration == -1:
            try:
                time_start = time.time()
                results = sess.run(output_tensor)
                duration = time.time() - time_start
                time_list.append(duration)
                for result in result_producer(results):
                    unique_id = int(result["unique_ids"])
                    start_logits = [float(x) for x in result["start_logits"].flat]
                    end_logits = [float(x) for x in result["end_logits"].flat]
                    all_results.append(
                        RawResult(unique_id=unique_id, start_logits=start_logits, end_logits=end_logits)
                    )
                idx += 1
            except tf.errors.OutOfRangeError:
                print("run out of data, exit....")
                break

        # all_predictions is the preds here, can caculate the accuracy
        label = parse_label_file(FLAGS.label_file)
        warmup = 5
        print(f"Latency is {np.array(time_list[warmup:]).mean() / FLAGS.predict_batch_size}")
        print(f"Batch size is {FLAGS.predict_batch_size}")
        # only calculate accuracy when running out all predictions
        if iteration == -1:
            squad_transform = SquadV1PostTransform(
                eval_examples, eval_features, FLAGS.n_best_size, FLAGS.max_answer_length, FLAGS.do_lower_case
            )

            preds, label = squad_transform((all_results, label))
            f1 = SquadF1()
            f1.update(preds, label)
            print(f"accuracy is F1: {f1.result()}")
            return f1.result()

    from kilter.quantization import Quantization

    quantizer = Quantization("./bert.yaml")
    # we should change the dataloader to provide only once the file name and batch_size
    dataset = Dataset(eval_writer.filename, FLAGS.predict_batch_size)
    dataloader = quantizer.dataloader(dataset, collate_fn=collate_fn)
    q_model = quantizer(graph, q_dataloader=dataloader, eval_func=eval_func)
    # q_model = quantizer(graph, q_dataloader=dataloader)
    from kilter.frameworks.tensorflow import write_graph

    write_graph(q_model.as_graph_def(), FLAGS.output_model)
    return quantizer, eval_func


def test_document_000(questions, tmp_path, monkeypatch, capsys, caplog):  # noqa: F811
    caplog.set_level(logging.INFO, "kilter")
    monkeypatch.chdir(tmp_path)
    yaml = (squad.Path(squad.__file__).parent / "bert.yaml").read_text()
    # So small a network is not as robust as BERT: the promise is a weaker one.
    (tmp_path / "bert.yaml").write_text(yaml.replace("relative:  0.01", "relative:  0.5"))
    flags = SimpleNamespace(
        predict_batch_size=8,
        label_file=questions / "dev-v1.1.json",
        n_best_size=20,
        max_answer_length=30,
        do_lower_case=True,
        output_model=str(tmp_path / "int8.pb"),
    )
    features = features_of(questions)
    writer = squad.FeatureWriter(tmp_path / "eval.tf_record")
    for feature in features:
        writer.process_feature(feature)
    writer.close()
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(bert.answers_to_questions(SIZE, bert.random_weights(2)), name="")
    examples = squad.read_squad_examples(flags.label_file)
    quantizer, eval_func = document_code(graph, writer, examples, features, flags)
    assert quantizer.met and "FP32 baseline is" in caplog.text
    assert "run out of data, exit...." in capsys.readouterr().out
    plan = {entry["name"]: entry["precision"] for entry in quantizer.result.plan["operators"]}
    assert plan["MatMul"] == "f32"  # as bert.yaml says
    assert plan["bert/encoder/layer_0/attention/self/query/MatMul"] == "int8"
    written = kilter.tensorflow.make_graph(flags.output_model)
    assert {"_QuantizedMatMul", "MakeIterator"} <= ops(written)
    assert eval_func(written) == pytest.approx(quantizer.result.best.accuracy[0])
    with tf1.Session(graph=written) as session:
        feeds = {"input_file:0": writer.filename, "batch_size:0": 8}
        found = kilter.tensorflow.iterator_sess_run(
            session, written.get_operation_by_name("MakeIterator"), feeds, ["unstack:0"]
        )
    assert sum(len(batch[0]) for batch in found) == len(features)
