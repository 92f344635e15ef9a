// The one exception type of kilter.
// The message says where, what was found and what was expected; the hint, when there is one, says what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace kilter {

class Error : public std::runtime_error {
  public:
    explicit Error(const std::string& message, std::string hint = {})
        : std::runtime_error(message), hint_(std::move(hint)) {}

    const std::string& hint() const { return hint_; }

    //! The same error with `context: ` put in front of the message, e.g. a file or an operator.
    Error in(const std::string& context) const { return Error(context + ": " + what(), hint_); }

  private:
    std::string hint_;
};

}  // namespace kilter
