"""Strategies written in Python."""

import pytest

import kilter
from study import SIZE, Study, batches


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("strategies"))


@pytest.fixture(scope="module")
def path(study):
    return study.folder / "model.onnx"


@kilter.register_strategy("test_worst_first")
class WorstFirst:
    """All on integers; then whatever hurts most on its own falls back."""

    def __init__(self, scoring="own"):
        self.scoring = scoring

    def run(self, search):
        space = search.space
        candidate = space.first()
        trial = search.evaluate(candidate, "all on integers", complete=True)
        assert not trial.met and search.best is None and trial == search.trials[0]
        assert trial.samples == search.baseline.samples
        scores = search.scores(self.scoring, candidate)
        assert len(scores) == len(space.operators) == len(search.gains())
        for index in sorted(space.quantized(candidate), key=lambda i: -scores[i]):
            before = search.output_error(candidate)
            candidate = space.with_float(candidate, index)
            assert search.output_error(candidate) >= 0 and before >= 0
            trial = search.evaluate(candidate, f"{space.operators[index].name} falls back")


def test_a_strategy_of_ones_own(study, path):
    found = kilter.tune(
        path,
        metric="topk",
        data=batches(study),
        strategy="test_worst_first",
        strategy_options={"scoring": "own"},
        **SIZE,
    )
    assert found.met and found.ended == "the first model that keeps the promise"
    assert found.trials[1].reason.endswith("falls back")
    assert "test_worst_first" in kilter.strategy_names()


def test_a_strategy_of_ones_own_in_a_configuration(study, path, tmp_path):
    config = {
        "model": {"name": "chain", "framework": "onnxrt_qdq"},
        "tuning": {"strategy": {"name": "test_worst_first", "options": {"scoring": "restored"}}},
    }
    arguments = dict(config=config, metric="topk", data=batches(study), **SIZE)
    found = kilter.tune(path, workspace=tmp_path / "ws", max_trials=4, **arguments)
    assert len(found.trials) == 4 and found.ended == "all 4 trials made"
    resumed = kilter.tune(path, workspace=tmp_path / "ws", resume=True, **arguments)
    assert resumed.met and resumed.trials[:4] == found.trials
    assert resumed.plan == kilter.tune(path, **arguments).plan


def test_randomness_of_a_strategy_depends_on_the_seed(study, path):
    @kilter.register_strategy("test_random")
    class Draws:
        ends_by_itself = True

        def run(self, search):
            candidate = search.space.first()
            for index, operator in enumerate(search.space.operators):
                candidate = candidate.replaced(index, search.random.randrange(len(operator.options)))
            search.evaluate(candidate, "drawn")

    def drawn(seed):
        found = kilter.tune(
            path, metric="topk", data=batches(study), strategy="test_random", seed=seed, **SIZE
        )
        assert len(found.trials) == 1
        return found.best.candidate

    assert drawn(1) == drawn(1) != drawn(2)


def test_errors_of_a_strategy_come_out_as_they_are(study, path):
    @kilter.register_strategy("test_broken")
    class Broken:
        def run(self, search):
            search.evaluate(search.space.first(), "first")
            raise LookupError("no idea what to try")

    kept = []

    @kilter.register_strategy("test_keeper")
    class Keeper:
        def run(self, search):
            kept.append(search)
            while True:
                try:
                    search.evaluate(search.space.first().replaced(0, 1), "again")
                    search.evaluate(search.space.with_float(search.space.first(), *range(15)), "all")
                except kilter.SearchOver:
                    return  # whoever catches it ends the search all the same

    arguments = dict(metric="topk", data=batches(study), **SIZE)
    with pytest.raises(LookupError, match="no idea"):
        kilter.tune(path, strategy="test_broken", **arguments)
    found = kilter.tune(path, strategy="test_keeper", **arguments)
    assert found.met and found.ended == "the first model that keeps the promise"
    with pytest.raises(kilter.Error, match="has ended"):
        kept[0].trials  # noqa: B018


def test_wrong_strategies_are_refused(study, path):
    with pytest.raises(TypeError, match=r"run\(search\)"):
        kilter.register_strategy("test_nothing")(int)
    with pytest.raises(kilter.Error, match="there is a strategy 'auto' already"):
        kilter.register_strategy("auto")(WorstFirst)
    kilter.register_strategy("test_again")(WorstFirst)
    kilter.register_strategy("test_again")(WorstFirst)  # a notebook's cell that runs twice

    @kilter.register_strategy("test_wrong_candidates")
    class Wrong:
        def run(self, search):
            with pytest.raises(kilter.Error, match="15"):
                search.evaluate(kilter.search.Candidate((0,)), "too short")
            with pytest.raises(kilter.Error, match="no option 99"):
                search.evaluate(search.space.first().replaced(0, 99), "no such option")
            with pytest.raises(ValueError, match="no operator 'conv99'"):
                search.space.with_float(search.space.first(), "conv99")
            search.evaluate(search.space.first(), "fine")

    found = kilter.tune(path, metric="topk", data=batches(study), strategy="test_wrong_candidates", **SIZE)
    assert len(found.trials) == 1
    with pytest.raises(TypeError, match="unexpected keyword"):
        kilter.tune(
            path,
            metric="topk",
            data=batches(study),
            strategy="test_again",
            strategy_options={"speed": 1},
            **SIZE,
        )
