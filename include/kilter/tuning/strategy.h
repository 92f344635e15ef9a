// Strategy: in which order candidates are tried. One file each in src/tuning/strategies; users can register their own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kilter/base/settings.h"
#include "kilter/tuning/search.h"

namespace kilter {

class Strategy {
  public:
    virtual ~Strategy() = default;
    //! Tries candidates until nothing is left to try. Search::evaluate ends it earlier by an exception: let it pass.
    virtual void run(Search& search) = 0;
    //! Does it go on to a fastest model and stop there? Others stop at the first success unless there is a time budget.
    virtual bool ends_by_itself() const { return false; }
};

using MakeStrategy = std::function<std::unique_ptr<Strategy>(const Settings& settings)>;

//! Names are lower case. Throws Error when the name is taken.
void register_strategy(const std::string& name, MakeStrategy make);
//! Throws Error with the nearest name, or all of them.
std::unique_ptr<Strategy> make_strategy(std::string_view name, const Settings& settings = {});
std::vector<std::string> strategy_names();

}  // namespace kilter
