#include "kilter/data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/fail.h"
#include "data/random.h"

namespace kilter {

struct Loader::State {
    // Position p of the order is prepared in slot p % slots.size(); workers stay within one round of what was taken.
    struct Slot {
        bool done = false;
        Sample sample;
        std::exception_ptr error;
    };

    std::shared_ptr<const Dataset> dataset;
    Transforms transforms;
    LoaderOptions options;
    std::vector<int64_t> order;
    std::vector<std::string> errors;

    std::mutex mutex;
    std::condition_variable done, room;
    std::vector<Slot> slots;
    size_t taken = 0, claimed = 0;
    bool stopping = false;
    std::vector<std::thread> workers;

    ~State() { stop(); }

    int worker_count() const {
        const int wanted = options.threads > 0 ? options.threads : std::min(available_cores(), 4);
        return static_cast<int>(
            std::min<size_t>(static_cast<size_t>(wanted), std::max<size_t>(order.size(), 1)));
    }

    void start() {
        const auto count = static_cast<size_t>(worker_count());
        // Two batches ahead, but a huge batch must not hold all samples twice.
        const auto ahead = static_cast<size_t>(std::clamp<int64_t>(2 * options.batch_size, 4, 256));
        slots = std::vector<Slot>(std::max(ahead, 2 * count));
        taken = claimed = 0;
        stopping = false;
        for (size_t i = 0; i < count; ++i) workers.emplace_back([this] { work(); });
    }

    void stop() {
        {
            const std::lock_guard lock(mutex);
            stopping = true;
        }
        room.notify_all();
        for (std::thread& worker : workers) worker.join();
        workers.clear();
    }

    void work() {
        std::unique_lock lock(mutex);
        while (true) {
            room.wait(lock,
                      [&] { return stopping || claimed == order.size() || claimed < taken + slots.size(); });
            if (stopping || claimed == order.size()) return;
            const size_t position = claimed++;
            lock.unlock();
            Slot result;
            try {
                result.sample = prepare(order[position]);
            } catch (...) {
                result.error = std::current_exception();
            }
            result.done = true;
            lock.lock();
            slots[position % slots.size()] = std::move(result);
            done.notify_one();
        }
    }

    Sample prepare(int64_t index) const {
        Sample sample = dataset->sample(index);
        sample.index = index;
        try {
            for (const auto& transform : transforms) transform->apply(sample);
        } catch (const Error& error) {
            if (sample.name.empty()) throw;
            throw error.in(sample.name);
        }
        return sample;
    }

    Slot take() {
        std::unique_lock lock(mutex);
        Slot& slot = slots[taken % slots.size()];
        done.wait(lock, [&] { return slot.done; });
        Slot result = std::move(slot);
        slot = {};
        ++taken;
        lock.unlock();
        room.notify_one();
        return result;
    }
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, Transforms transforms, LoaderOptions options)
    : state_(std::make_unique<State>()) {
    require(options.batch_size > 0, "a batch cannot have {} samples", options.batch_size);
    state_->dataset = std::move(dataset);
    state_->transforms = std::move(transforms);
    state_->options = options;
    std::vector<int64_t>& order = state_->order;
    order.resize(static_cast<size_t>(state_->dataset->size()));
    std::iota(order.begin(), order.end(), int64_t{0});
    if (options.shuffle) {
        Random random(options.seed);
        for (size_t i = order.size(); i > 1; --i)
            std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    }
    if (options.limit > 0) order.resize(std::min(order.size(), static_cast<size_t>(options.limit)));
}

Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;

std::optional<Batch> Loader::next() {
    State& state = *state_;
    if (state.workers.empty()) state.start();
    std::vector<Sample> samples;
    while (static_cast<int64_t>(samples.size()) < state.options.batch_size &&
           state.taken < state.order.size()) {
        State::Slot slot = state.take();
        if (!slot.error) {
            samples.push_back(std::move(slot.sample));
            continue;
        }
        if (state.options.on_error == OnError::stop) std::rethrow_exception(slot.error);
        try {
            std::rethrow_exception(slot.error);
        } catch (const Error& error) {
            state.errors.emplace_back(error.what());
        }
    }
    const bool full = static_cast<int64_t>(samples.size()) == state.options.batch_size;
    if (samples.empty() || (!full && state.options.drop_last)) return std::nullopt;
    return stack(std::move(samples));
}

void Loader::rewind() {
    state_->stop();
    state_->taken = 0;
    state_->errors.clear();
}

int64_t Loader::samples() const { return static_cast<int64_t>(state_->order.size()); }
const LoaderOptions& Loader::options() const { return state_->options; }
std::vector<std::string> Loader::errors() const { return state_->errors; }

Batch stack(std::vector<Sample> samples) {
    Batch batch;
    if (samples.empty()) return batch;
    for (size_t input = 0; input < samples[0].inputs.size(); ++input) {
        const Tensor& first = samples[0].inputs[input];
        Shape shape = first.shape();
        shape.insert(shape.begin(), static_cast<int64_t>(samples.size()));
        if (samples.size() == 1) {
            batch.inputs.push_back(first.reshaped(std::move(shape)));
            continue;
        }
        Tensor stacked(first.dtype(), std::move(shape));
        auto* target = static_cast<char*>(stacked.raw_mutable());
        for (const Sample& sample : samples) {
            require(sample.inputs.size() == samples[0].inputs.size(), "{} has {} inputs, {} has {}",
                    sample.name, sample.inputs.size(), samples[0].name, samples[0].inputs.size());
            const Tensor& tensor = sample.inputs[input];
            if (tensor.shape() != first.shape() || tensor.dtype() != first.dtype())
                throw Error(fmt::format("samples of shapes {} and {} cannot be stacked ({} and {})",
                                        to_string(first.shape()), to_string(tensor.shape()), samples[0].name,
                                        sample.name),
                            "resize them to one shape, or take batches of 1: --batch 1");
            if (tensor.bytes() > 0) std::memcpy(target, tensor.raw(), tensor.bytes());
            target += tensor.bytes();
        }
        batch.inputs.push_back(std::move(stacked));
    }
    for (Sample& sample : samples) batch.labels.push_back(std::move(sample.label));
    return batch;
}

}  // namespace kilter
