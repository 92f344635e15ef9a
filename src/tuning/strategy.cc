#include "kilter/tuning/strategy.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/spelling.h"
#include "tuning/strategies/list.h"

namespace kilter {
namespace {

struct Registry {
    std::mutex mutex;
    std::map<std::string, MakeStrategy, std::less<>> strategies;

    Registry() {
        strategies["auto"] = make_auto;
        strategies["basic"] = make_basic;
        strategies["mse"] = make_mse;
        strategies["mse_v2"] = make_mse_v2;
        strategies["bayesian"] = make_bayesian;
        strategies["random"] = make_random;
        strategies["exhaustive"] = make_exhaustive;
        strategies["tpe"] = make_tpe;
        strategies["conservative"] = make_conservative;
    }
    static Registry& get() {
        static Registry registry;
        return registry;
    }
};

}  // namespace

void register_strategy(const std::string& name, MakeStrategy make) {
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex);
    require(!name.empty() && std::ranges::none_of(name, [](unsigned char c) { return std::isupper(c) != 0; }),
            "a strategy needs a name in lower case, found '{}'", name);
    require(static_cast<bool>(make), "strategy '{}': there is nothing to make it with", name);
    require(registry.strategies.emplace(name, std::move(make)).second, "there is a strategy '{}' already",
            name);
}

std::unique_ptr<Strategy> make_strategy(std::string_view name, const Settings& settings) {
    MakeStrategy make;
    {
        Registry& registry = Registry::get();
        const std::lock_guard lock(registry.mutex);
        if (const auto found = registry.strategies.find(name); found != registry.strategies.end())
            make = found->second;
    }
    if (make) return make(settings);
    fail_unknown("strategy", name, strategy_names());
}

std::vector<std::string> strategy_names() {
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex);
    std::vector<std::string> names;
    for (const auto& [name, make] : registry.strategies) names.push_back(name);
    return names;
}

}  // namespace kilter
