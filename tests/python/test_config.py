"""kilter config: what it says about files, and that schema, documentation and program agree."""

import json
import re
import subprocess
import sys

import pytest

from conftest import DATA, ROOT

jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def schema():
    return json.loads((ROOT / "docs" / "config.schema.json").read_text())


def write(tmp_path, text):
    path = tmp_path / "conf.yaml"
    path.write_text(text)
    return path


def test_the_published_schema_is_what_the_program_prints(cli, schema):
    result = cli("config", "--schema")
    assert result.status == 0
    assert result.out == (ROOT / "docs" / "config.schema.json").read_text()
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_documentation_lists_every_key():
    script = ROOT / "tools" / "config_docs.py"
    process = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


def defaults(schema, root):
    """A document with every default written out; options of operators and samples have none."""
    document = {}
    for name, entry in schema.get("properties", {}).items():
        maps = [option for option in [entry, *entry.get("anyOf", [])] if "properties" in option]
        if entry.get("$ref") == "#/$defs/configs":
            document[name] = defaults(root["$defs"]["configs"], root)
        elif maps and "required" not in maps[0] and name not in ("diagnosis", "multi_metrics"):
            document[name] = defaults(maps[0], root)
        elif "default" in entry:
            document[name] = entry["default"]
    return document


def test_the_defaults_of_the_schema_are_those_of_the_program(cli, tmp_path, schema):
    document = defaults(schema, schema)
    assert document["tuning"]["exit_policy"]["max_trials"] == 100
    written = cli("config", write(tmp_path, json.dumps(document)))
    assert written.status == 0, written.err
    assert written.out == cli("config", write(tmp_path, "{}")).out


GOOD = [
    {},
    {"tuning": {"accuracy_criterion": {"relative": "1%"}}},
    {"tuning": {"accuracy_criterion": {"relative": 0}, "diagnosis": False}},
    {
        "quantization": {
            "calibration": {"sampling_size": "50, 100"},
            "op_wise": {"a.*b": {"weight": {"dtype": "fp32"}}},
        }
    },
    {
        "evaluation": {
            "accuracy": {"metric": {"topk": 1}, "dataloader": {"dataset": {"dummy": {"shape": [1, 2]}}}}
        }
    },
    {"model": None, "version": 1.0},
]
BAD = [
    ({"tunning": {}}, "did you mean 'tuning'"),
    ({"tuning": {"accuracy_criterion": {"relative": 1}}}, "above -1 and below 1"),
    ({"tuning": {"exit_policy": {"max_trials": 0.5}}}, "whole number"),
    ({"quantization": {"calibration": {"dataloader": {"batch_size": 1}}}}, "'dataset' is missing"),
    ({"pruning": {}}, "does not prune"),
    ({"tuning": {"tensorboard": "maybe"}}, "true or false"),
    ({"model": {"framework": "caffe"}}, "one of tensorflow"),
]


@pytest.mark.parametrize("document", GOOD, ids=json.dumps)
def test_schema_and_program_accept_the_same(cli, tmp_path, schema, document):
    jsonschema.validate(document, schema)
    result = cli("config", write(tmp_path, json.dumps(document)))
    assert result.status == 0, result.err


@pytest.mark.parametrize("document, said", BAD, ids=json.dumps)
def test_schema_and_program_refuse_the_same(cli, tmp_path, schema, document, said):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)
    path = write(tmp_path, json.dumps(document))
    result = cli("config", path)
    assert result.status == 1
    assert said in result.err
    assert re.match(rf"kilter: {re.escape(str(path))}:1: ", result.err)
    assert path.read_text() == json.dumps(document)


def test_names_of_components_are_checked_with_their_place(cli, tmp_path):
    cases = {
        "evaluation:\n  accuracy:\n    metric: {topq: 1}\n": ":3: evaluation.accuracy.metric.topq: there is no metric 'topq'",
        "tuning:\n  strategy:\n    name: basik\n": ":3: tuning.strategy.name: there is no strategy 'basik'",
        "evaluation:\n  accuracy:\n    dataloader: {dataset: {dumy: {}}}\n": ":3: evaluation.accuracy.dataloader.dataset.dumy: there is no dataset 'dumy'",
    }
    for text, said in cases.items():
        result = cli("config", write(tmp_path, text))
        assert result.status == 1
        assert said in result.err
        assert "did you mean" in result.err
    assert cli("config").status == 2
    assert (
        "no file" in cli("config", "nowhere.yaml").err or "nowhere.yaml" in cli("config", "nowhere.yaml").err
    )


def blocks(path):
    """Code blocks of a document that are configurations."""
    text = path.read_text(errors="replace")
    return [
        block
        for block in re.findall(r"^```\w*\r?\n(.*?)^```", text, re.S | re.M)
        if re.search(r"^model:", block, re.M)
    ]


def test_the_configurations_of_the_old_documents_load_as_they_stand(cli, tmp_path):
    folder = DATA.parent / "reference"
    if not folder.is_dir():
        pytest.skip(f"no documents in {folder}")
    found = [block for path in sorted(folder.glob("*.txt")) for block in blocks(path)]
    assert len(found) == 4
    printed = []
    for block in found:
        result = cli("config", write(tmp_path, block))
        assert result.status == 0, result.err
        printed.append(result.out)
    assert "MatMul: f32" in printed[0] and "500 samples" in printed[0]
    assert "blendcnn, from pytorch" in printed[1]
    assert "strategy     basic" in printed[2]
    assert "1.5 % worse" in printed[3] and "strategy     mse" in printed[3] and "500 trials" in printed[3]
