"""The package itself: what importing it touches, and whether its stub tells the truth about the extension."""

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import kilter
from kilter import _kilter

# Everything about the process that belongs to others, before and after.
LOOK = """
import json, logging, os, signal, sys, threading, warnings

def look():
    root = logging.getLogger()
    return {
        "root logger": [repr(root.handlers), root.level, root.disabled, root.propagate],
        "levels": [logging.root.manager.disable, logging.getLogger("other").level, logging.raiseExceptions],
        "logger class": repr(logging.getLoggerClass()),
        "warnings": repr(warnings.filters),
        "showwarning": repr(warnings.showwarning),
        "environment": dict(os.environ),
        "affinity": sorted(os.sched_getaffinity(0)),
        "threads": [len(os.listdir("/proc/self/task")), threading.active_count()],
        "signals": [repr(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGFPE)],
        "hooks": repr([sys.excepthook, sys.displayhook, sys.meta_path, sys.path_hooks]),
        "path": sys.path,
        "folder": os.getcwd(),
        "switch": sys.getswitchinterval(),
    }

import numpy
import numpy.random
state = numpy.random.get_state()[1].tolist()
before = look()
import kilter
import kilter.quantization, kilter.experimental, kilter.strategy.strategy, kilter.utils.utility
after = look()
heavy = [name for name in ("torch", "tensorflow", "mxnet", "onnx", "IPython", "scipy") if name in sys.modules]
kilters = logging.getLogger("kilter")
print(json.dumps({
    "changed": [key for key in before if before[key] != after[key]],
    "heavy": heavy,
    "handlers": len(kilters.handlers), "level": kilters.level, "propagate": kilters.propagate,
    "seed": state == numpy.random.get_state()[1].tolist(),
}))
"""


def test_importing_touches_nothing_of_others():
    done = subprocess.run(
        [sys.executable, "-c", LOOK], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found == {
        "changed": [],
        "heavy": [],
        "handlers": 0,
        "level": 0,
        "propagate": True,
        "seed": True,
    }


def test_importing_kilter_brings_only_what_it_needs():
    """What is seldom used is imported when it is asked for."""
    code = (
        "import sys, kilter\n"
        "late = [name for name in sys.modules if name.startswith(('kilter.experimental', 'kilter.quantization',"
        " 'kilter.strategy'))]\n"
        "assert not late, late\n"
        "assert kilter.experimental.Quantization and kilter.quantization.Quantization and kilter.strategy\n"
        "assert kilter.utils.utility if 'kilter.utils.utility' in sys.modules else kilter.utils\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def stub():
    return ast.parse(Path(_kilter.__file__).with_name("_kilter.pyi").read_text())


def parameters(function):
    names = [argument.arg for argument in function.args.args]
    return names[1:] if names[:1] == ["self"] else names


def native_parameters(function):
    """Of a function of the extension, which nanobind describes as Python would write it."""
    (described,) = function.__nb_signature__
    return parameters(ast.parse(described[0] + ": ...").body[0])


def test_the_stub_lists_what_the_extension_has():
    def public(names):
        return {name for name in names if not name.startswith("_") or name == "__version__"}

    tree = stub()
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    values = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert public(vars(_kilter)) == set(classes) | set(functions) | values
    for name, node in classes.items():
        native = getattr(_kilter, name)
        methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
        # Classes that cannot be made have an __init__ that nanobind says nothing about.
        made = {"__init__"} if hasattr(vars(native).get("__init__"), "__nb_signature__") else set()
        assert public(vars(native)) | made == set(methods), name
        for method, part in methods.items():
            decorators = {entry.id for entry in part.decorator_list if isinstance(entry, ast.Name)}
            kind = inspect.getattr_static(native, method)
            assert ("property" in decorators) == isinstance(kind, property), f"{name}.{method}"
            if "property" not in decorators:
                assert native_parameters(getattr(native, method)) == parameters(part), f"{name}.{method}"
        bases = [entry.id for entry in node.bases]
        assert [base.__name__ for base in native.__bases__ if base is not object] == bases, name
    for name, node in functions.items():
        assert native_parameters(getattr(_kilter, name)) == parameters(node), name


def test_the_package_says_that_it_is_typed():
    assert (Path(kilter.__file__).parent / "py.typed").exists()
