// GraphHost: a graph that TensorFlow runs and kilter tunes. TensorFlow has observed its tensors; every candidate is a GraphDef for a
// function that runs it.
#pragma once

#include "kilter/deploy/tensorflow.h"
#include "kilter/tuning/hosted.h"

namespace kilter::tensorflow {

class GraphHost : public Host {
  public:
    //! Evaluates a GraphDef; null: the FP32 graph as it was given.
    using Run = std::function<HostedRun(const GraphDef* graph)>;

    //! `stats` are those of graph.tensors().
    GraphHost(QuantizableGraph graph, Stats stats, Run run);

    std::vector<HostedOperator> operators() override;
    double bytes() const override { return bytes_; }
    HostedRun run(const Plan* plan) override;
    std::vector<double> noise(const Plan& plan) override;
    //! Writes best.pb.
    void keep(const Plan& plan, const std::filesystem::path& workspace) override;
    uint64_t fingerprint() override;
    uint64_t calibration_fingerprint() override;

    IntegerGraph write(const Plan& plan) const;

  private:
    QuantizableGraph graph_;
    GraphDef fp32_;
    Stats stats_;
    Run run_;
    double bytes_ = 0;
    std::vector<QuantizableOperator> products_;  // what is chosen; pools and the like follow their neighbours
    std::map<std::pair<std::string, uint64_t>, double> known_;  // noise, by operator and choice
};

//! Error of what a convolution or product computes, as a share of its signal: from rounding and clipping what it reads, and from rounding
//! its weights. Both are taken to be independent of each other and of the signal.
double operator_noise(const TfGraph& graph, const std::string& product, const ValueStats& read,
                      const OperatorPlan& plan);

}  // namespace kilter::tensorflow
