"""The INT8 files that bench/peers.py --int8 and bench/accuracy.py measure: kilter's, and what the peers make themselves.

All are made from the same FP32 file and the same calibration samples. Files of the peers are kept in build/int8
and made again when the model is newer; kilter's are always made anew.
"""

import os
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / "build" / "int8"


def target_file(name, suffix):
    CACHE.mkdir(parents=True, exist_ok=True)
    return CACHE / f"{name}{suffix}"


def is_fresh(file, model):
    return file.exists() and file.stat().st_mtime > Path(model).stat().st_mtime


def kilter_file(model, samples, name, **options):
    """kilter's quantization, written as ONNX. `samples` is a list of {input: array}."""
    import kilter

    file = target_file(name, ".kilter.onnx")
    kilter.quantize(model, samples, **options).save(file)
    return file


def onnxruntime_file(model, samples, name, per_channel=True):
    """ONNX Runtime's own static quantization: QDQ, u8 activations, s8 weights, after its own preparation."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    file = target_file(name, ".onnxruntime.onnx" if per_channel else ".onnxruntime-per-tensor.onnx")
    if is_fresh(file, model):
        return file

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.iterator = iter(samples)

        def get_next(self):
            return next(self.iterator, None)

    prepared = file.with_suffix(".prepared.onnx")
    quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
    partial = file.with_suffix(".partial.onnx")
    quantize_static(
        str(prepared),
        str(partial),
        Reader(),
        quant_format=QuantFormat.QDQ,
        per_channel=per_channel,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    prepared.unlink()
    os.replace(partial, file)
    return file


def nncf_file(model, samples, name, transformer=False):
    """NNCF's default post-training quantization for OpenVINO."""
    import nncf
    import openvino

    file = target_file(name, ".nncf.xml")
    if is_fresh(file, model):
        return file
    quantized = nncf.quantize(
        openvino.Core().read_model(str(model)),
        nncf.Dataset(list(samples)),
        subset_size=len(samples),
        model_type=nncf.ModelType.TRANSFORMER if transformer else None,
    )
    openvino.save_model(quantized, str(file), compress_to_fp16=False)
    return file
