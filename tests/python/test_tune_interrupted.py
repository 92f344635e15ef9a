"""Studies that are killed, interrupted, run twice at a time or out of disk: nothing finished is lost."""

import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from study import COMMAND, Study, records, trials

KILLS = 50
SEARCHES = (
    ("basic",),
    ("auto",),
    ("tpe", "--timeout", "1000", "--max-trials", "25"),
    ("random", "--timeout", "1000", "--max-trials", "25", "--no-early-rejection"),
)


def flags(search, *more, workspace="ws"):
    """The size of a model does not depend on the clock, and so the course of a search for it does not."""
    return ("--strategy", *search, "--objective", "modelsize", "--workspace", workspace, "--json", *more)


def start(study, *arguments):
    return subprocess.Popen(
        [COMMAND, *study.arguments(*arguments)],
        cwd=study.folder,
        env=os.environ | {"GOMP_SPINCOUNT": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(study, workspace):
    """What a finished study left on the disk."""
    return trials(study.folder / workspace), (study.folder / "int8.onnx").read_bytes()


@pytest.fixture(scope="module")
def whole_basic(tmp_path_factory):
    """What the strategy basic finds when nothing happens."""
    study = Study(tmp_path_factory.mktemp("whole"), samples=60)
    study.result(*flags(("basic",)))
    return outcome(study, "ws")


def test_fifty_kills_lose_and_repeat_nothing(tmp_path):
    study = Study(tmp_path, samples=60)
    whole, seconds = {}, {}
    for search in SEARCHES:
        begin = time.monotonic()
        study.result(*flags(search, workspace=f"whole-{search[0]}"))
        seconds[search] = time.monotonic() - begin
        whole[search] = outcome(study, f"whole-{search[0]}")
        assert len(whole[search][0]) >= 15

    moments, kills, studies, longest = random.Random(1), 0, 0, 0
    while kills < KILLS:
        search = SEARCHES[studies % len(SEARCHES)]
        studies += 1
        workspace, attempts = f"killed-{studies}", 0
        while True:
            begun = (study.folder / workspace / "study.journal").exists()
            process = start(study, *flags(search, *["--resume"] * begun, workspace=workspace))
            try:
                _, error = process.communicate(timeout=moments.uniform(0, seconds[search]))
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills, attempts = kills + (process.returncode == -signal.SIGKILL), attempts + 1
        assert process.returncode == 0, error
        longest = max(longest, attempts)
        assert outcome(study, workspace) == whole[search]
        numbers = [trial["number"] for trial in trials(study.folder / workspace)]
        assert sorted(set(numbers)) == [*range(1, max(numbers) + 1)]
        assert not list((study.folder / workspace).glob("*.partial"))
    assert longest > 1  # some studies were killed again after they went on


def test_a_second_process_is_refused(tmp_path):
    study = Study(tmp_path, samples=60)
    first = start(study, *flags(("random",), "--timeout", "60", "--max-trials", "100000"))
    try:
        first.stderr.readline()  # FP32 is evaluated: the study is there
        for more in ([], ["--resume"]):
            done = study.tune(*flags(("random",), "--timeout", "60", "--max-trials", "100000", *more))
            assert done.returncode == 1
            assert ("another process is tuning here" if more else "there is a study already") in done.stderr
    finally:
        first.kill()
        first.communicate()
    records(study.folder / "ws")


def test_ctrl_c_keeps_the_study_and_says_how_to_go_on(tmp_path, whole_basic):
    study = Study(tmp_path, samples=60)
    search = ("basic",)
    process = start(study, *flags(search))
    while not process.stderr.readline().startswith("tune 3"):
        pass
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == "" and "interrupted; --workspace ws --resume goes on from here" in error
    done = len([entry for entry in records(study.folder / "ws") if entry["type"] == "trial"])
    assert done >= 3
    study.result(*flags(search, "--resume"))
    assert outcome(study, "ws") == whole_basic


# The script mounts a small file system in a name space of its own, tunes there until it is full, and goes on after
# making room.
FULL_DISK = """
set -e
mkdir -p "$SMALL" && mount -t tmpfs -o size=$SIZE tmpfs "$SMALL" || exit 99
set +e
"$@" --workspace "$SMALL/ws" > first.out 2> first.err
echo $? > first.status
cp "$SMALL/ws/study.journal" first.journal
mount -o remount,size=16m "$SMALL"
more=; [ -e "$SMALL/ws/study.journal" ] && more=--resume
"$@" --workspace "$SMALL/ws" $more > second.out 2> second.err
echo $? > second.status
mkdir -p kept && cp "$SMALL/ws/"* kept/
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs the command unshare")
@pytest.mark.parametrize("size", ["16k", "64k", "160k", "240k"])
def test_a_full_disk_is_named_and_the_study_goes_on_with_room(tmp_path, whole_basic, size):
    study = Study(tmp_path, samples=60)
    arguments = [str(COMMAND), *study.arguments(*flags(("basic",))[:4])]
    environment = os.environ | {"GOMP_SPINCOUNT": "0", "SIZE": size, "SMALL": str(tmp_path / "small")}
    for space in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        done = subprocess.run(
            [*space, "bash", "-c", FULL_DISK, "bash", *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        if (tmp_path / "second.status").exists():
            break
    else:
        pytest.skip(f"cannot mount a small file system: {done.stderr}")

    def read(name):
        return (tmp_path / name).read_text()

    assert int(read("first.status")) == 1
    error = read("first.err")
    assert "No space left on device" in error
    assert str(tmp_path / "small" / "ws") in error.splitlines()[-2] + error.splitlines()[-1]
    assert "internal" not in error
    if (tmp_path / "first.journal").exists():
        (tmp_path / "before").mkdir()
        shutil.copy(tmp_path / "first.journal", tmp_path / "before" / "study.journal")
        before = records(tmp_path / "before")
        assert before == records(tmp_path / "kept")[: len(before)]
    assert int(read("second.status")) == 0, read("second.err")
    resumed = trials(tmp_path / "kept"), (tmp_path / "int8.onnx").read_bytes()
    assert resumed == whole_basic
    assert "The promise is kept" in read("second.out")
