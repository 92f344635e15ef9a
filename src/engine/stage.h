// Stage: a graph and its plans, one per combination of input shapes. Where shapes become known only at run time,
// the plan ends there and the rest of the graph is a stage of its own, planned when the shapes are there.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/builder.h"

namespace kilter::engine {

class Stage {
  public:
    //! `part`: of a larger graph, whose own inputs were observed already.
    Stage(Graph graph, EngineOptions options, std::shared_ptr<WeightStore> weights, bool part = false);
    ~Stage();

    const Graph& graph() const { return graph_; }
    std::vector<Tensor> run(const std::vector<Tensor>& inputs, Observer* observer = nullptr);
    void profile(const std::vector<Tensor>& inputs, int repetitions, std::vector<StepReport>& reports);
    size_t arena_bytes(const std::vector<Tensor>& inputs);

  private:
    struct Entry;
    struct Body;
    //! Who looks at a run besides the caller.
    struct Audience {
        int repetitions = 1;
        std::vector<StepReport>* reports = nullptr;
        Observer* observer = nullptr;
    };
    std::shared_ptr<Entry> entry(const std::vector<Tensor>& inputs, bool observed);
    std::shared_ptr<Entry> compile(const std::vector<Tensor>& inputs, bool observed) const;
    std::shared_ptr<Entry> compile_whole(const std::vector<Tensor>& inputs, Specialized known, int threads,
                                         bool observed) const;
    std::vector<Tensor> run_micro_batches(Entry& whole, const std::vector<Tensor>& inputs,
                                          const Audience& audience);
    void execute(Entry& entry, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                 const Audience& audience);
    std::vector<Tensor> run(const std::vector<Tensor>& inputs, const Audience& audience);
    //! A sub-graph of one of the nodes, as a stage of its own.
    Body& body(const Graph& graph);

    Graph graph_;
    EngineOptions options_;
    std::shared_ptr<WeightStore> weights_;
    bool part_;
    std::mutex mutex_;
    std::list<std::shared_ptr<Entry>> entries_;  // most recently used first
    std::unordered_map<const Graph*, std::unique_ptr<Body>> bodies_;
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
