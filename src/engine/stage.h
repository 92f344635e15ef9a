// Stage: a graph and its plans, one per combination of input shapes. Where shapes become known only at run time,
// the plan ends there and the rest of the graph is a stage of its own, planned when the shapes are there.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/builder.h"

namespace kilter::engine {

class Stage {
  public:
    Stage(Graph graph, EngineOptions options, std::shared_ptr<WeightStore> weights);

    const Graph& graph() const { return graph_; }
    std::vector<Tensor> run(const std::vector<Tensor>& inputs);
    void profile(const std::vector<Tensor>& inputs, int repetitions, std::vector<StepReport>& reports);
    size_t arena_bytes(const std::vector<Tensor>& inputs);

  private:
    struct Entry;
    std::shared_ptr<Entry> entry(const std::vector<Tensor>& inputs);
    std::shared_ptr<Entry> compile(const std::vector<Tensor>& inputs) const;
    std::shared_ptr<Entry> compile_whole(const std::vector<Tensor>& inputs, Specialized known,
                                         int threads) const;
    std::vector<Tensor> run_micro_batches(Entry& whole, const std::vector<Tensor>& inputs, int repetitions,
                                          std::vector<StepReport>* reports);
    void execute(Entry& entry, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                 int repetitions, std::vector<StepReport>* reports);
    std::vector<Tensor> run(const std::vector<Tensor>& inputs, int repetitions,
                            std::vector<StepReport>* reports);

    Graph graph_;
    EngineOptions options_;
    std::shared_ptr<WeightStore> weights_;
    std::mutex mutex_;
    std::list<std::shared_ptr<Entry>> entries_;  // most recently used first
};

//! Sets the number of OpenMP threads of the calling thread, and sets it back.
class ThreadScope {
  public:
    explicit ThreadScope(int threads);
    ~ThreadScope();
    ThreadScope(const ThreadScope&) = delete;
    ThreadScope& operator=(const ThreadScope&) = delete;

  private:
    int before_;
};

}  // namespace kilter::engine
