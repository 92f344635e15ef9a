// ModelBackend: the Backend that quantizes a model, runs it and measures it.
// Weights are quantized once, packed once and shared by all trials; a trial that changes one operator rebuilds one operator.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>

#include "kilter/tuning/tune.h"

namespace kilter {

//! A model brought to the form a variant quantizes, with its statistics. `calibrate` is called for statistics that `workspace` (which
//! may be empty) does not have; they are kept there.
struct PreparedModel {
    Model model;
    Stats stats;
    std::vector<std::string> notes;
};
PreparedModel prepare_variant(const Model& model, const QuantizeOptions& options, const Variant& variant,
                              const std::filesystem::path& workspace, const Calibrate& calibrate);

//! The plan of a prepared graph with the choices of `chosen`, by name: recipes may bring operators that a space does not know, and
//! take some away.
Plan adapted_plan(const Graph& prepared, const Plan& chosen);

class ModelBackend : public Backend {
  public:
    //! `evaluation` may be null when nothing is evaluated (sensitivity). Both must outlive this object, and so must `model`.
    ModelBackend(const Model& model, std::function<BatchSource()> calibration, Evaluation* evaluation,
                 const TuneOptions& options);
    ~ModelBackend() override;

    const Space& space() const override { return space_; }
    Outcome baseline() override;
    Outcome evaluate(const Candidate& candidate, bool complete) override;
    std::vector<double> scores(Scoring scoring, const Candidate& base) override;
    double output_error(const Candidate& candidate) override;
    std::vector<double> gains() override;
    void keep(const Trial& best) override;
    void know_baseline(const Outcome& baseline) override;

    QuantizedModel quantized(const Candidate& candidate);
    //! Of the calibration samples.
    uint64_t calibration_fingerprint();

  private:
    struct Prepared {  // a variant of the model with its statistics
        PreparedModel parts;
        QuantizeOptions options;
    };
    Prepared& prepared(int variant);
    void read_calibration();
    Stats calibrate_on(const Model& model, int64_t samples);
    Cost cost_of(const Model& model, double bytes);
    std::vector<double> restored_scores(const Candidate& base);
    std::vector<double> own_scores(const Candidate& base);
    const std::vector<std::vector<Tensor>>& reference_outputs();
    EngineOptions engine(int threads) const;
    void tell(const std::string& what, int64_t done = 0, int64_t of = 0) const;

    const Model& model_;
    std::function<BatchSource()> calibration_;
    Evaluation* evaluation_;
    const TuneOptions& options_;
    Space space_;
    std::vector<std::unique_ptr<Prepared>> prepared_;
    std::vector<std::vector<Tensor>> batches_;  // calibration samples, for as many as are needed
    int64_t samples_read_ = 0;
    uint64_t fingerprint_ = 0;
    std::vector<std::vector<Tensor>> scoring_;    // the first of them
    std::vector<std::vector<Tensor>> reference_;  // what FP32 makes of these
    std::vector<Tensor> one_;                     // one sample, to measure with
    Outcome baseline_;
    std::unique_ptr<Program> reference_program_;  // FP32, to measure beside
};

//! File names within a workspace.
std::filesystem::path journal_path(const std::filesystem::path& workspace);
std::filesystem::path stats_path(const std::filesystem::path& workspace, const Variant& variant,
                                 bool before_smoothing);
std::filesystem::path best_path(const std::filesystem::path& workspace);

}  // namespace kilter
