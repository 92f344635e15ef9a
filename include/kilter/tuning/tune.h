// The tuner: a model, samples, a way to measure accuracy and a promise; the fastest model that keeps it comes back.
//
//     Model model = onnx::read("resnet50.onnx");
//     auto evaluation = evaluate_with(open_validation, metrics);
//     TuneResult result = tune(model, open_calibration, *evaluation, {.criterion = Criterion::parse("1%")});
//     save(result.model, "resnet50-int8.onnx");
#pragma once

#include <filesystem>

#include "kilter/base/settings.h"
#include "kilter/tuning/evaluation.h"
#include "kilter/tuning/search.h"

namespace kilter {

//! What long work tells about itself. All functions may be empty; they are called by the thread that called tune().
struct TuneProgress {
    //! What is being done, how much of it is done, of how much (0: not known). May throw to end the work.
    std::function<void(const std::string& what, int64_t done, int64_t of)> working;
    std::function<void(const Outcome& baseline)> baseline;
    std::function<void(const Trial& trial, const Space& space, const Trial* best)> trial;
};

struct TuneOptions {
    Criterion criterion;  // how many metrics there are and which way is better is taken from the evaluation
    Objective objective;
    ExitPolicy exit;
    std::string strategy = "auto";
    Settings strategy_settings;
    uint64_t seed = 1978;
    QuantizeOptions quantize;           // what everything starts from; `plan` and `cache` are not read
    std::vector<SpaceRule> rules;       // what the search may change
    std::vector<int64_t> samples{100};  // to calibrate with; several numbers multiply the search
    int64_t scoring_samples = 32;     // of the calibration samples, for what is ranked without an evaluation
    size_t memory = size_t{1} << 30;  // bytes of activations kept for ranking
    int threads = 0;                  // of the programs whose latency is measured; 0: all cores
    bool early_rejection = true;
    //! Where journal, statistics and the best model are kept; empty: nowhere. Without `resume` it must not hold a study.
    std::filesystem::path workspace;
    bool resume = false;
    TuneProgress progress;
};

//! An operator that runs in floating point in the end, and why.
struct Spared {
    std::string name, op;
    Precision precision = Precision::f32;
    std::string reason;
};

//! What a search found, whoever evaluated its candidates.
struct StudyResult {
    bool met = false;
    Outcome baseline;
    Trial best;  // the best that keeps the promise, otherwise the most accurate one
    std::vector<Trial> trials;
    std::vector<std::string> summaries;  // of the trials: "int8 51, f32 2"
    std::vector<int> pareto;  // numbers of the trials that no other beats in both accuracy and objective
    std::vector<Spared> spared;
    std::string ended;  // why the search did: "kept the promise", "100 trials", …
    double seconds = 0;
    int full_evaluations = 0;  // trials whose accuracy was measured on all samples
    std::filesystem::path workspace;
};

struct TuneResult : StudyResult {
    QuantizedModel model;
};

//! `calibration` starts the calibration samples from the beginning; labels are not read. Throws Error for what is wrong with the model,
//! the data or the options, and lets errors of user functions pass; what was recorded by then stays in the workspace.
TuneResult tune(const Model& model, const std::function<BatchSource()>& calibration, Evaluation& evaluation,
                TuneOptions options = {});

//! Builds trial `number` of a study again, without calibrating. Trial 0 is what tune() gave, or would give now. Throws Error.
//! `model` is taken instead of the file that the study names.
QuantizedModel recover(const std::filesystem::path& workspace, int number, const Model* model = nullptr);

//! What each operator costs and gains: the rows of `kilter sensitivity`, worst first.
struct Sensitivity {
    std::string name, op;
    double error = 0;  // of the outputs that goes away when this operator alone returns to floating point
    double share = 0;  // the same, as a share of the whole error of the quantized model
    double gain = 0;   // share of the FP32 model's time that running it on integers saves
};
std::vector<Sensitivity> sensitivity(const Model& model, const std::function<BatchSource()>& calibration,
                                     TuneOptions options = {});

}  // namespace kilter
