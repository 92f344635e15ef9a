// QuantizedSession: a quantized model and the program that runs it. And how options of quantization come from Python.
#pragma once

#include "kilter/quantization/quantize.h"
#include "session.h"

namespace kilter::python {

class QuantizedSession : public Session {
  public:
    QuantizedSession(QuantizedModel quantized, int threads)
        : Session(clone(quantized.model), threads, true), quantized_(std::move(quantized)) {}

    const QuantizedModel& quantized() const { return quantized_; }
    std::string serialized() const override { return onnx::write_bytes(export_model(quantized_)); }

  private:
    QuantizedModel quantized_;
};

//! Changes what `words` says; what is absent or None stays as it is.
void apply_words(const nb::dict& words, QuantizeOptions& options);

}  // namespace kilter::python
