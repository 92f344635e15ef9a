#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

namespace kilter::cli {

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::clear() {
    if (!shown_) return;
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
    shown_ = false;
}

void ProgressLine::show(const std::string& text) {
    if (!terminal_) return;
    shown_ = true;
    fmt::print(stderr, "\r\x1b[K{}", text);
    std::fflush(stderr);
}

}  // namespace kilter::cli
